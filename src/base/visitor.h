// std::visit with one lambda for each alternative: std::visit(Visitor{[](const A&) {...}, ...}, variant).
#pragma once

namespace sallyport {

template <class... Cases>
struct Visitor : Cases... {
  using Cases::operator()...;
};

}  // namespace sallyport

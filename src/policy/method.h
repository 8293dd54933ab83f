// The methods that an HTTP request may have, and sets of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace sallyport::policy {

enum class Method : std::uint8_t { Get, Head, Post, Put, Delete, Patch, Options };
inline constexpr Method kLastMethod = Method::Options;

std::string_view name(Method method);
// Methods are case-sensitive (RFC 9110, 9.1).
std::optional<Method> method_from_name(std::string_view text);

class Methods {
 public:
  constexpr Methods() = default;
  constexpr Methods(std::initializer_list<Method> methods) {
    for (const Method method : methods) add(method);
  }
  static constexpr Methods all() { return from_bits((1U << (static_cast<unsigned>(kLastMethod) + 1U)) - 1U); }

  constexpr void add(Method method) { bits_ |= bit(method); }
  constexpr bool contains(Method method) const { return (bits_ & bit(method)) != 0; }
  constexpr bool contains(Methods other) const { return (bits_ & other.bits_) == other.bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  std::string str() const;  // "GET, HEAD"

  // As they travel between our processes; bits that stand for no method are dropped.
  constexpr std::uint8_t bits() const { return bits_; }
  static constexpr Methods from_bits(unsigned bits) {
    Methods methods;
    methods.bits_ = static_cast<std::uint8_t>(bits & ((2U << static_cast<unsigned>(kLastMethod)) - 1U));
    return methods;
  }
  constexpr bool operator==(const Methods&) const = default;

 private:
  static constexpr std::uint8_t bit(Method method) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(method));
  }
  std::uint8_t bits_ = 0;
};

}  // namespace sallyport::policy

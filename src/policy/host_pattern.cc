#include "policy/host_pattern.h"

namespace sallyport::policy {
namespace {

constexpr std::string_view kWildcard = "*.";

// With the dot before it: "evil-cdn.example" is not below "cdn.example".
bool is_below(std::string_view name, std::string_view base) {
  return name.size() > base.size() + 1 && name.ends_with(base) && name[name.size() - base.size() - 1] == '.';
}

}  // namespace

Result<HostPattern> HostPattern::parse(std::string_view text) {
  const bool wildcard = text.starts_with(kWildcard);
  const std::string_view name = wildcard ? text.substr(kWildcard.size()) : text;
  if (name.find('*') != std::string_view::npos) {
    return fail(Reason::BadRequest,
                "a '*' may only stand alone as the first label, as in \"*.cdn.example.com\"");
  }
  Result<HostName> base = HostName::parse(name);
  if (!base) return fail(std::move(base));
  if (const std::string_view why = special_name(*base); !why.empty()) {
    return fail(Reason::BadRequest, "'" + base->str() + "' cannot be granted: that name " + std::string(why));
  }
  return HostPattern(*std::move(base), wildcard);
}

bool HostPattern::matches(const HostName& host) const {
  return wildcard_ ? is_below(host.str(), base_.str()) : host == base_;
}

std::string HostPattern::str() const {
  return wildcard_ ? std::string(kWildcard) + base_.str() : base_.str();
}

bool HostPattern::covers(const HostPattern& other) const {
  if (!wildcard_) return *this == other;
  if (other.wildcard_ && other.base_ == base_) return true;
  return is_below(other.base_.str(), base_.str());
}

}  // namespace sallyport::policy

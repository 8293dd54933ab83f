#include "config/shared_hosts.h"

#include <libpsl.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/text.h"

namespace sallyport::config {
namespace {

// What the Public Suffix List does not have (Debian 12's): names that hand out names or buckets to anybody. A
// '*' is one label. Names above each are shared too, so the suffixes of the List are here as well where a
// wildcard above them would be tempting. docs/policy.md repeats this list.
constexpr std::array<std::string_view, 42> kSharedNames{
    "*.amazonaws.com",
    "s3.*.amazonaws.com",
    "s3.dualstack.*.amazonaws.com",
    "s3-website.*.amazonaws.com",
    "execute-api.*.amazonaws.com",
    "*.elb.amazonaws.com",
    "*.es.amazonaws.com",
    "s3.*.amazonaws.com.cn",
    "execute-api.*.amazonaws.com.cn",
    "lambda-url.*.on.aws",
    "blob.core.windows.net",
    "dfs.core.windows.net",
    "file.core.windows.net",
    "queue.core.windows.net",
    "table.core.windows.net",
    "*.web.core.windows.net",
    "vault.azure.net",
    "azureedge.net",
    "azurefd.net",
    "*.azurefd.net",
    "azure-api.net",
    "trafficmanager.net",
    "*.cloudapp.azure.com",
    "*.azurecontainerapps.io",
    "storage.googleapis.com",
    "googleusercontent.com",
    "bc.googleusercontent.com",
    "r2.cloudflarestorage.com",
    "cloudflareaccess.com",
    "freetls.fastly.net",
    "global.ssl.fastly.net",
    "global.prod.fastly.net",
    "map.fastly.net",
    "c.cdn77.org",
    "b-cdn.net",
    "ngrok.app",
    "ngrok.dev",
    "ngrok-free.app",
    "ngrok-free.dev",
    "sharepoint.com",
    "s3.*.scw.cloud",
    "s3.*.backblazeb2.com",
};

constexpr std::array<std::string_view, 37> kDohHosts{
    "dns.google",
    "dns.google.com",
    "dns64.dns.google",
    "cloudflare-dns.com",
    "one.one.one.one",
    "cloudflare-gateway.com",
    "dns.quad9.net",
    "dns9.quad9.net",
    "dns10.quad9.net",
    "dns11.quad9.net",
    "doh.opendns.com",
    "doh.familyshield.opendns.com",
    "doh.sandbox.opendns.com",
    "dns.umbrella.com",
    "doh.umbrella.com",
    "dns.adguard.com",
    "dns-family.adguard.com",
    "dns-unfiltered.adguard.com",
    "adguard-dns.com",
    "dns.nextdns.io",
    "doh.cleanbrowsing.org",
    "dns.alidns.com",
    "doh.pub",
    "dns.pub",
    "doh.360.cn",
    "dns.controld.com",
    "freedns.controld.com",
    "dns.mullvad.net",
    "doh.dns.sb",
    "doh.sb",
    "doh.libredns.gr",
    "doh.xfinity.com",
    "dns0.eu",
    "dns.digitale-gesellschaft.ch",
    "doh.applied-privacy.net",
    "ordns.he.net",
    "doh.dns.apple.com",
};

bool is_at_or_above(std::string_view base, std::string_view shared) {
  const auto names = split(base, '.');
  const auto labels = split(shared, '.');
  return names.size() <= labels.size() && std::equal(names.rbegin(), names.rend(), labels.rbegin(),
                                                     [](std::string_view name, std::string_view label) {
                                                       return label == "*" || label == name;
                                                     });
}

bool is_public_suffix(const std::string& name) {
  return psl_is_public_suffix(psl_builtin(), name.c_str()) == 1;
}

}  // namespace

std::span<const std::string_view> shared_names() {
  return kSharedNames;
}

std::span<const std::string_view> doh_names() {
  return kDohHosts;
}

bool is_shared(const policy::HostPattern& host) {
  if (!host.is_wildcard()) return false;
  const std::string& base = host.base().str();
  // The List has wildcards too: each name below such a one is a suffix.
  if (is_public_suffix(base) || is_public_suffix("any-name-below." + base)) return true;
  return std::ranges::any_of(kSharedNames, [&](std::string_view name) { return is_at_or_above(base, name); });
}

std::string_view doh_host(const policy::HostPattern& host) {
  const std::string_view base = host.base().str();
  const auto is_below = [](std::string_view name, std::string_view above) {
    return name.size() > above.size() && name.ends_with(above) && name[name.size() - above.size() - 1] == '.';
  };
  const auto* found = std::ranges::find_if(kDohHosts, [&](std::string_view name) {
    return base == name || is_below(base, name) || (host.is_wildcard() && is_below(name, base));
  });
  return found == kDohHosts.end() ? std::string_view{} : *found;
}

}  // namespace sallyport::config

// The session's certificate authority and the leaves it signs. P-256 throughout; a leaf lives 24 hours,
// backdated by one.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/host.h"

using X509 = struct x509_st;
using EVP_PKEY = struct evp_pkey_st;

namespace sallyport::net {

struct X509Free {
  void operator()(X509* certificate) const;
};
struct KeyFree {
  void operator()(EVP_PKEY* key) const;
};
using Certificate = std::unique_ptr<X509, X509Free>;
using PrivateKey = std::unique_ptr<EVP_PKEY, KeyFree>;

struct KeyPair {
  Certificate certificate;
  PrivateKey key;
};

// A new authority, pathlen 0, for one session.
Result<KeyPair> make_session_ca(std::string_view session_id);
// With that key, or a new one when it is null.
Result<KeyPair> make_leaf(const KeyPair& ca, const policy::HostName& host, PrivateKey key = nullptr);
// The same key once more: it goes with the last of those who have it.
PrivateKey share(const PrivateKey& key);

Result<std::string> certificate_pem(const X509& certificate);
Result<std::string> private_key_pem(const EVP_PKEY& key);
Result<KeyPair> key_pair_from_pem(std::string_view certificate_pem, std::string_view key_pem);

}  // namespace sallyport::net

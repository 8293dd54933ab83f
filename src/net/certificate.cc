#include "net/certificate.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <utility>

#include "base/random.h"
#include "net/tls.h"

namespace sallyport::net {
namespace {

constexpr long kHour = 60L * 60;
constexpr long kBackdated = kHour;      // clocks differ
constexpr long kLeafLife = 24 * kHour;  // from now
constexpr long kCaLife = 30 * 24 * kHour;
constexpr std::size_t kSerialBytes = 16;
constexpr std::size_t kIdPrefixBytes = 8;  // of the session's id, in the authority's name

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, BioFree>;
struct NumberFree {
  void operator()(BIGNUM* number) const { BN_free(number); }
};
struct ExtensionFree {
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};

std::unexpected<Error> openssl_failed(std::string_view what) {
  return fail(Reason::Internal, std::string(what) + ": " + take_openssl_errors());
}

// Positive, and exactly 16 bytes long (RFC 5280, 4.1.2.2 allows 20).
bool set_random_serial(X509& certificate) {
  std::string bytes = random_bytes(kSerialBytes);
  bytes[0] = static_cast<char>((static_cast<unsigned char>(bytes[0]) & 0x7fU) | 0x40U);
  const std::unique_ptr<BIGNUM, NumberFree> number(BN_bin2bn(
      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()), nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr;
}

struct Extension {
  int nid;
  std::string value;  // in OpenSSL's notation
};

// In that order: the key identifiers are made from what is in the certificates by then.
bool add_extensions(X509& certificate, X509& issuer, std::initializer_list<Extension> extensions) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  X509V3_set_ctx_nodb(&context);
  for (const Extension& wanted : extensions) {
    const std::unique_ptr<X509_EXTENSION, ExtensionFree> extension(
        X509V3_EXT_conf_nid(nullptr, &context, wanted.nid, wanted.value.c_str()));
    if (!extension || X509_add_ext(&certificate, extension.get(), -1) != 1) return false;
  }
  return true;
}

// Version 3, the key (a new one when it is null), a random serial and the dates.
Result<KeyPair> begin(long life, PrivateKey key) {
  if (!key) key.reset(EVP_EC_gen("P-256"));
  KeyPair pair{Certificate(X509_new()), std::move(key)};
  if (!pair.certificate || !pair.key) return openssl_failed("key");
  X509& certificate = *pair.certificate;
  const bool done = X509_set_version(&certificate, X509_VERSION_3) == 1 && set_random_serial(certificate) &&
                    X509_gmtime_adj(X509_getm_notBefore(&certificate), -kBackdated) != nullptr &&
                    X509_gmtime_adj(X509_getm_notAfter(&certificate), life) != nullptr &&
                    X509_set_pubkey(&certificate, pair.key.get()) == 1;
  if (!done) return openssl_failed("certificate");
  return pair;
}

}  // namespace

void X509Free::operator()(X509* certificate) const {
  X509_free(certificate);
}

void KeyFree::operator()(EVP_PKEY* key) const {
  EVP_PKEY_free(key);
}

Result<KeyPair> make_session_ca(std::string_view session_id) {
  auto pair = begin(kCaLife, nullptr);
  if (!pair) return pair;
  X509& certificate = *pair->certificate;
  const std::string name = "Sallyport session CA " + std::string(session_id.substr(0, kIdPrefixBytes));
  X509_NAME* subject = X509_get_subject_name(&certificate);
  const bool done =
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0) == 1 &&
      X509_set_issuer_name(&certificate, subject) == 1 &&
      add_extensions(certificate, certificate,
                     {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                      {NID_key_usage, "critical,keyCertSign"},
                      {NID_subject_key_identifier, "hash"}}) &&
      X509_sign(&certificate, pair->key.get(), EVP_sha256()) != 0;
  if (!done) return openssl_failed("session CA");
  return pair;
}

PrivateKey share(const PrivateKey& key) {
  if (key) EVP_PKEY_up_ref(key.get());
  return PrivateKey(key.get());
}

Result<KeyPair> make_leaf(const KeyPair& ca, const policy::HostName& host, PrivateKey key) {
  auto pair = begin(kLeafLife, std::move(key));
  if (!pair) return pair;
  X509& certificate = *pair->certificate;
  // The subject stays empty, so the alternative name is critical (RFC 5280, 4.2.1.6). A HostName holds
  // nothing that OpenSSL's notation gives a meaning to.
  const bool done = X509_set_issuer_name(&certificate, X509_get_subject_name(ca.certificate.get())) == 1 &&
                    add_extensions(certificate, *ca.certificate,
                                   {{NID_basic_constraints, "critical,CA:FALSE"},
                                    {NID_key_usage, "critical,digitalSignature"},
                                    {NID_ext_key_usage, "serverAuth"},
                                    {NID_subject_key_identifier, "hash"},
                                    {NID_authority_key_identifier, "keyid:always"},
                                    {NID_subject_alt_name, "critical,DNS:" + host.str()}}) &&
                    X509_sign(&certificate, ca.key.get(), EVP_sha256()) != 0;
  if (!done) return openssl_failed("leaf for " + host.str());
  return pair;
}

namespace {

Result<std::string> text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  if (size <= 0) return openssl_failed("PEM");
  return std::string(data, static_cast<std::size_t>(size));
}

}  // namespace

Result<std::string> certificate_pem(const X509& certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || PEM_write_bio_X509(bio.get(), &certificate) != 1) return openssl_failed("certificate as PEM");
  return text_of(bio);
}

Result<std::string> private_key_pem(const EVP_PKEY& key) {
  const Bio bio(BIO_new(BIO_s_secmem()));  // zeroed when freed
  if (!bio || PEM_write_bio_PKCS8PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return openssl_failed("key as PEM");
  }
  return text_of(bio);
}

Result<KeyPair> key_pair_from_pem(std::string_view certificate_pem, std::string_view key_pem) {
  const Bio certificate(BIO_new_mem_buf(certificate_pem.data(), static_cast<int>(certificate_pem.size())));
  const Bio key(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  if (!certificate || !key) return openssl_failed("PEM");
  KeyPair pair{Certificate(PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr)),
               PrivateKey(PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr))};
  if (!pair.certificate || !pair.key) return openssl_failed("PEM");
  if (X509_check_private_key(pair.certificate.get(), pair.key.get()) != 1) {
    return openssl_failed("certificate and key do not belong together");
  }
  return pair;
}

}  // namespace sallyport::net

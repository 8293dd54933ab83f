#include "sandbox/java_trust.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

namespace sallyport::sandbox {
namespace {

// The format is that of sun.security.provider.JavaKeyStore, in the terms of java.io.DataOutput. PKCS#12
// would need Oracle's own attribute on every certificate, which OpenSSL 3.0 does not write.
constexpr std::uint32_t kMagic = 0xfeedfeed;
constexpr std::uint32_t kVersion = 2;
constexpr std::uint32_t kTrustedCertificate = 2;
constexpr std::string_view kCertificateType = "X.509";
// No secret: the JDK's own store has it, and programs that name one name this.
constexpr std::string_view kPassword = "changeit";
constexpr std::string_view kWhitener = "Mighty Aphrodite";

void add_number(std::string& to, std::uint64_t number, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) to += static_cast<char>(number >> shift);
}

void add_text(std::string& to, std::string_view ascii) {
  add_number(to, ascii.size(), 2);
  to += ascii;
}

void add_certificate(std::string& to, std::size_t index, std::string_view der) {
  add_number(to, kTrustedCertificate, 4);
  add_text(to, "root" + std::to_string(index));
  add_number(to, 0, 8);  // when it was added
  add_text(to, kCertificateType);
  add_number(to, der.size(), 4);
  to += der;
}

std::string digest_of(std::string_view store) {
  std::string text;
  for (const char c : kPassword) {
    text += '\0';
    text += c;
  }
  text += kWhitener;
  text += store;
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return {digest.begin(), digest.end()};
}

struct FreeBytes {
  void operator()(unsigned char* bytes) const { OPENSSL_free(bytes); }
};

}  // namespace

std::string java_trust_store(const std::string& pem_bundle) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> in(
      BIO_new_mem_buf(pem_bundle.data(), static_cast<int>(pem_bundle.size())), &BIO_free);
  std::string entries;
  std::size_t count = 0;
  unsigned char* der = nullptr;
  long size = 0;
  while (in && PEM_bytes_read_bio(&der, &size, nullptr, PEM_STRING_X509, in.get(), nullptr, nullptr) == 1) {
    const std::unique_ptr<unsigned char, FreeBytes> owned(der);
    add_certificate(entries, count++, {reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
  }
  ERR_clear_error();  // it says that the bundle ends here

  std::string store;
  add_number(store, kMagic, 4);
  add_number(store, kVersion, 4);
  add_number(store, count, 4);
  store += entries;
  return store + digest_of(store);
}

}  // namespace sallyport::sandbox

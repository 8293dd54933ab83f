// For tests: RFC 4648, 4, by somebody else than the code under test.
#pragma once

#include <openssl/evp.h>

#include <string>
#include <string_view>

namespace sallyport::vault {

inline std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock ends it with a NUL
  const int size =
      ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                        reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

}  // namespace sallyport::vault

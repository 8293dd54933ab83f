// The one trust store that Java reads: it knows neither PEM bundles nor variables that name one.
#pragma once

#include <string>
#include <string_view>

namespace sallyport::sandbox {

// The certificates of a PEM bundle as a JKS key store, under the password that every JDK expects. What is
// no certificate is left out.
std::string java_trust_store(const std::string& pem_bundle);

}  // namespace sallyport::sandbox

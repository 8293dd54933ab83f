#include "net/certificate.h"

#include <gtest/gtest.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "net/test_support.h"

namespace sallyport::net {
namespace {

int verify(const KeyPair& ca, X509& leaf, const char* host) {
  X509_STORE* store = X509_STORE_new();
  X509_STORE_add_cert(store, ca.certificate.get());
  X509_STORE_CTX* context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, &leaf, nullptr);
  X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context);
  X509_VERIFY_PARAM_set1_host(parameters, host, 0);
  X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_X509_STRICT);
  X509_verify_cert(context);
  const int code = X509_STORE_CTX_get_error(context);
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  return code;
}

TEST(Certificate, ALeafIsGoodForItsHostOnly) {
  const auto ca = make_session_ca("0123456789abcdef");
  ASSERT_TRUE(ca) << ca.error().detail;
  const auto leaf = make_leaf(*ca, test::host("github.com"));
  ASSERT_TRUE(leaf) << leaf.error().detail;
  EXPECT_EQ(verify(*ca, *leaf->certificate, "github.com"), X509_V_OK);
  EXPECT_EQ(verify(*ca, *leaf->certificate, "gitlab.com"), X509_V_ERR_HOSTNAME_MISMATCH);
  const auto other = make_session_ca("0123456789abcdef");
  ASSERT_TRUE(other);
  EXPECT_NE(verify(*other, *leaf->certificate, "github.com"), X509_V_OK);
}

TEST(Certificate, ALeafSignsNothing) {
  const auto ca = make_session_ca("0123456789abcdef");
  ASSERT_TRUE(ca);
  const auto leaf = make_leaf(*ca, test::host("github.com"));
  ASSERT_TRUE(leaf);
  EXPECT_EQ(X509_check_ca(leaf->certificate.get()), 0);
  EXPECT_EQ(X509_get_pathlen(ca->certificate.get()), 0);
  EXPECT_EQ(X509_get_key_usage(ca->certificate.get()), static_cast<unsigned>(KU_KEY_CERT_SIGN));
  EXPECT_EQ(X509_get_key_usage(leaf->certificate.get()), static_cast<unsigned>(KU_DIGITAL_SIGNATURE));
  EXPECT_EQ(X509_get_extended_key_usage(leaf->certificate.get()), static_cast<unsigned>(XKU_SSL_SERVER));
}

TEST(Certificate, ALeafLivesADayAndIsBackdatedByAnHour) {
  const auto ca = make_session_ca("0123456789abcdef");
  ASSERT_TRUE(ca);
  const auto leaf = make_leaf(*ca, test::host("github.com"));
  ASSERT_TRUE(leaf);
  int days = 0;
  int seconds = 0;
  ASSERT_EQ(ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(leaf->certificate.get()),
                           X509_get0_notAfter(leaf->certificate.get())),
            1);
  EXPECT_EQ(days, 1);
  EXPECT_NEAR(seconds, 3600, 2);
}

TEST(Certificate, SerialsAre128RandomBits) {
  const auto ca = make_session_ca("0123456789abcdef");
  ASSERT_TRUE(ca);
  const auto a = make_leaf(*ca, test::host("github.com"));
  const auto b = make_leaf(*ca, test::host("github.com"));
  ASSERT_TRUE(a && b);
  const ASN1_INTEGER* serial = X509_get0_serialNumber(a->certificate.get());
  EXPECT_EQ(ASN1_STRING_length(serial), 16);
  EXPECT_NE(ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(b->certificate.get())), 0);
}

TEST(Certificate, PemAndBackIsTheSame) {
  const auto ca = make_session_ca("0123456789abcdef");
  ASSERT_TRUE(ca);
  const auto certificate = certificate_pem(*ca->certificate);
  const auto key = private_key_pem(*ca->key);
  ASSERT_TRUE(certificate && key);
  const auto again = key_pair_from_pem(*certificate, *key);
  ASSERT_TRUE(again) << again.error().detail;
  EXPECT_EQ(X509_cmp(again->certificate.get(), ca->certificate.get()), 0);
  const auto leaf = make_leaf(*again, test::host("github.com"));
  ASSERT_TRUE(leaf);
  EXPECT_EQ(verify(*ca, *leaf->certificate, "github.com"), X509_V_OK);
}

TEST(Certificate, RefusesAKeyOfAnotherCertificate) {
  const auto ca = make_session_ca("0123456789abcdef");
  const auto other = make_session_ca("0123456789abcdef");
  ASSERT_TRUE(ca && other);
  const auto pair =
      key_pair_from_pem(certificate_pem(*ca->certificate).value(), private_key_pem(*other->key).value());
  ASSERT_FALSE(pair);
  EXPECT_EQ(pair.error().reason, Reason::Internal);
  EXPECT_FALSE(key_pair_from_pem("", ""));
}

}  // namespace
}  // namespace sallyport::net

// SPDX-License-Identifier: Apache-2.0
#include "operator/webhook/certificate_bundle.h"

#include "gtest/gtest.h"
#include "lib/pki/certificates.h"

namespace cachewarm::webhook {
namespace {

constexpr std::chrono::hours kDay{24};
constexpr char kName[] = "cachewarm-webhook.cachewarm-system.svc";
const WallTime kStart = *ParseTime("2026-11-21T08:00:00Z");

RenewalInputs At(WallTime now, const std::string& ca_bundle = "") {
  return {.now = now, .dns_name = kName, .ca_bundle = ca_bundle};
}

CertificateBundle First() {
  return **Renew({}, At(kStart));
}

std::optional<CertificateBundle> RenewAt(const CertificateBundle& bundle, WallTime now,
                                         const std::string& ca_bundle) {
  const auto renewed = Renew(bundle, At(now, ca_bundle));
  EXPECT_TRUE(renewed.ok()) << renewed.status();
  return *renewed;
}

size_t AuthoritiesOf(const CertificateBundle& bundle) {
  return pki::ParseCertificates(bundle.authorities)->size();
}

TEST(CertificateBundle, EmptySecretGetsBothCertificates) {
  const CertificateBundle bundle = First();
  const auto authority = *pki::ParseCertificates(bundle.authorities);
  const auto serving = *pki::ParseCertificates(bundle.certificate);
  ASSERT_EQ(authority.size(), 1U);
  EXPECT_EQ(serving.front().dns_names, std::vector<std::string>{kName});
  EXPECT_TRUE(pki::IsSignedBy(bundle.certificate, bundle.authorities));
  EXPECT_TRUE(pki::KeyMatches(bundle.key, bundle.certificate));
  EXPECT_TRUE(pki::KeyMatches(bundle.authority_key, bundle.authorities));
  EXPECT_EQ(serving.front().until, kStart + 90 * kDay);
  EXPECT_EQ(authority.front().until, kStart + 3650 * kDay);
}

TEST(CertificateBundle, ValidBundleIsNotRenewed) {
  const CertificateBundle bundle = First();
  EXPECT_EQ(RenewAt(bundle, kStart, bundle.authorities), std::nullopt);
  EXPECT_EQ(RenewAt(bundle, kStart + 59 * kDay, bundle.authorities), std::nullopt);
  EXPECT_EQ(RenewAt(bundle, kStart + 59 * kDay, ""), std::nullopt)
      << "the caBundle is updated afterwards";
}

TEST(CertificateBundle, ServingCertificateIsRenewedAtAThirdOfItsLifetime) {
  const CertificateBundle bundle = First();
  const auto renewed = RenewAt(bundle, kStart + 61 * kDay, bundle.authorities);
  ASSERT_TRUE(renewed.has_value());
  EXPECT_EQ(renewed->authorities, bundle.authorities);
  EXPECT_EQ(renewed->authority_key, bundle.authority_key);
  EXPECT_NE(renewed->certificate, bundle.certificate);
  EXPECT_TRUE(pki::IsSignedBy(renewed->certificate, bundle.authorities));
  EXPECT_EQ(RenewAt(*renewed, kStart + 61 * kDay, bundle.authorities), std::nullopt);
}

TEST(CertificateBundle, ExpiredCertificateIsReplacedForAnyCaBundle) {
  const CertificateBundle bundle = First();
  const auto renewed = RenewAt(bundle, kStart + 91 * kDay, "nonsense");
  ASSERT_TRUE(renewed.has_value());
  EXPECT_NE(renewed->certificate, bundle.certificate);
}

TEST(CertificateBundle, NewAuthorityEntersCaBundleBeforeItSigns) {
  const WallTime late = kStart + 2500 * kDay;
  CertificateBundle bundle = First();
  // All certificates have expired but the serving certificate.
  const auto serving =
      *pki::IssueServing({.certificate = bundle.authorities, .key = bundle.authority_key}, {kName},
                         {.from = late - kDay, .until = late + 89 * kDay});
  bundle.certificate = serving.certificate;
  bundle.key = serving.key;

  const auto renewed = RenewAt(bundle, late, bundle.authorities);
  ASSERT_TRUE(renewed.has_value());
  EXPECT_EQ(AuthoritiesOf(*renewed), 2U);
  EXPECT_EQ(renewed->certificate, bundle.certificate);
  EXPECT_FALSE(pki::IsSignedBy(renewed->certificate, renewed->authorities));

  EXPECT_EQ(RenewAt(*renewed, late, bundle.authorities), std::nullopt) << "not in the caBundle yet";

  const auto reissued = RenewAt(*renewed, late, renewed->authorities);
  ASSERT_TRUE(reissued.has_value());
  EXPECT_EQ(reissued->authorities, renewed->authorities);
  EXPECT_TRUE(pki::IsSignedBy(reissued->certificate, reissued->authorities));
  EXPECT_EQ(RenewAt(*reissued, late, reissued->authorities), std::nullopt);

  const auto cleaned = RenewAt(*reissued, kStart + 3651 * kDay, reissued->authorities);
  ASSERT_TRUE(cleaned.has_value());
  EXPECT_EQ(AuthoritiesOf(*cleaned), 1U);
}

TEST(CertificateBundle, LostAuthorityKeyCausesNewAuthority) {
  CertificateBundle bundle = First();
  bundle.authority_key.clear();
  const auto renewed = RenewAt(bundle, kStart, bundle.authorities);
  ASSERT_TRUE(renewed.has_value());
  EXPECT_EQ(AuthoritiesOf(*renewed), 2U);
  EXPECT_EQ(renewed->certificate, bundle.certificate) << "valid while the old authority is trusted";
}

TEST(CertificateBundle, UnusableEntriesAreReplaced) {
  const CertificateBundle bundle = First();
  const CertificateBundle other = First();
  for (const auto& spoil : std::vector<void (*)(CertificateBundle&, const CertificateBundle&)>{
           [](CertificateBundle&it, const CertificateBundle&) { it.certificate = "nonsense"; },
           [](CertificateBundle&it, const CertificateBundle&) { it.key.clear(); },
           [](CertificateBundle&it, const CertificateBundle&from) { it.key = from.key; },
           [](CertificateBundle&it, const CertificateBundle&from) {
             it.certificate = from.certificate;
             it.key = from.key;
           },
           [](CertificateBundle&it, const CertificateBundle&) {
             it.authorities = it.authorities.substr(0, 100);
           }}) {
    CertificateBundle spoiled = bundle;
    spoil(spoiled, other);
    const auto renewed = RenewAt(spoiled, kStart, bundle.authorities);
    ASSERT_TRUE(renewed.has_value());
    EXPECT_TRUE(pki::IsSignedBy(renewed->certificate, renewed->authorities));
    EXPECT_TRUE(pki::KeyMatches(renewed->key, renewed->certificate));
    EXPECT_TRUE(pki::KeyMatches(renewed->authority_key, renewed->authorities));
  }
}

TEST(CertificateBundle, ChangedDnsNameCausesNewCertificate) {
  const CertificateBundle bundle = First();
  RenewalInputs moved = At(kStart, bundle.authorities);
  moved.dns_name = "cachewarm-webhook.elsewhere.svc";
  const auto renewed = *Renew(bundle, moved);
  ASSERT_TRUE(renewed.has_value());
  EXPECT_EQ(renewed->authorities, bundle.authorities);
  EXPECT_EQ(pki::ParseCertificates(renewed->certificate)->front().dns_names.front(),
            moved.dns_name);
}

TEST(CertificateBundle, ClockGoingBackKeepsAuthoritiesBounded) {
  CertificateBundle bundle = First();
  for (int i = 0; i < 8; ++i) {
    if (const auto renewed = RenewAt(bundle, kStart - i * 3651 * kDay, bundle.authorities)) {
      bundle = *renewed;
    }
    EXPECT_LE(AuthoritiesOf(bundle), 4U);
  }
}

}  // namespace
}  // namespace cachewarm::webhook

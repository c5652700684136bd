// SPDX-License-Identifier: Apache-2.0
#include "operator/admission/webhook/key_ring.h"

#include "gtest/gtest.h"
#include "lib/pki/certificates.h"

namespace cachewarm::webhook {
namespace {

constexpr std::chrono::hours kDay{24};
constexpr char kName[] = "cachewarm-webhook.cachewarm-system.svc";
const WallTime kStart = *ParseTime("2026-11-21T08:00:00Z");

Circumstances At(WallTime now, const std::string& announced = "") {
  return {.now = now, .dns_name = kName, .announced = announced};
}

KeyRing First() {
  return **Renew({}, At(kStart));
}

std::optional<KeyRing> RenewAt(const KeyRing& ring, WallTime now, const std::string& announced) {
  const auto renewed = Renew(ring, At(now, announced));
  EXPECT_TRUE(renewed.ok()) << renewed.status();
  return *renewed;
}

size_t AuthoritiesOf(const KeyRing& ring) {
  return pki::ParseCertificates(ring.authorities)->size();
}

TEST(KeyRing, IsMadeAtOnceWhereThereIsNothing) {
  const KeyRing ring = First();
  const auto authority = *pki::ParseCertificates(ring.authorities);
  const auto serving = *pki::ParseCertificates(ring.certificate);
  ASSERT_EQ(authority.size(), 1U);
  EXPECT_EQ(serving.front().dns_names, std::vector<std::string>{kName});
  EXPECT_TRUE(pki::IsSignedBy(ring.certificate, ring.authorities));
  EXPECT_TRUE(pki::Belongs(ring.key, ring.certificate));
  EXPECT_TRUE(pki::Belongs(ring.authority_key, ring.authorities));
  EXPECT_EQ(serving.front().until, kStart + 90 * kDay);
  EXPECT_EQ(authority.front().until, kStart + 3650 * kDay);
}

TEST(KeyRing, IsLeftAloneWhileItIsGood) {
  const KeyRing ring = First();
  EXPECT_EQ(RenewAt(ring, kStart, ring.authorities), std::nullopt);
  EXPECT_EQ(RenewAt(ring, kStart + 59 * kDay, ring.authorities), std::nullopt);
  EXPECT_EQ(RenewAt(ring, kStart + 59 * kDay, ""), std::nullopt) << "announcing comes after";
}

TEST(KeyRing, AServingCertificateIsRenewedWithAThirdOfItsTimeLeft) {
  const KeyRing ring = First();
  const auto renewed = RenewAt(ring, kStart + 61 * kDay, ring.authorities);
  ASSERT_TRUE(renewed.has_value());
  EXPECT_EQ(renewed->authorities, ring.authorities);
  EXPECT_EQ(renewed->authority_key, ring.authority_key);
  EXPECT_NE(renewed->certificate, ring.certificate);
  EXPECT_TRUE(pki::IsSignedBy(renewed->certificate, ring.authorities));
  EXPECT_EQ(RenewAt(*renewed, kStart + 61 * kDay, ring.authorities), std::nullopt);
}

TEST(KeyRing, AnExpiredCertificateIsReplacedWhateverIsAnnounced) {
  const KeyRing ring = First();
  const auto renewed = RenewAt(ring, kStart + 91 * kDay, "nonsense");
  ASSERT_TRUE(renewed.has_value());
  EXPECT_NE(renewed->certificate, ring.certificate);
}

TEST(KeyRing, ANewAuthorityIsAnnouncedBeforeItsCertificateIsShown) {
  const WallTime late = kStart + 2500 * kDay;
  KeyRing ring = First();
  // Nobody looked for years, but for the serving certificate.
  const auto serving =
      *pki::IssueServing({.certificate = ring.authorities, .key = ring.authority_key}, {kName},
                         {.from = late - kDay, .until = late + 89 * kDay});
  ring.certificate = serving.certificate;
  ring.key = serving.key;

  const auto announced = RenewAt(ring, late, ring.authorities);
  ASSERT_TRUE(announced.has_value());
  EXPECT_EQ(AuthoritiesOf(*announced), 2U);
  EXPECT_EQ(announced->certificate, ring.certificate);
  EXPECT_FALSE(pki::IsSignedBy(announced->certificate, announced->authorities));

  EXPECT_EQ(RenewAt(*announced, late, ring.authorities), std::nullopt) << "not announced yet";

  const auto shown = RenewAt(*announced, late, announced->authorities);
  ASSERT_TRUE(shown.has_value());
  EXPECT_EQ(shown->authorities, announced->authorities);
  EXPECT_TRUE(pki::IsSignedBy(shown->certificate, shown->authorities));
  EXPECT_EQ(RenewAt(*shown, late, shown->authorities), std::nullopt);

  const auto cleaned = RenewAt(*shown, kStart + 3651 * kDay, shown->authorities);
  ASSERT_TRUE(cleaned.has_value());
  EXPECT_EQ(AuthoritiesOf(*cleaned), 1U);
}

TEST(KeyRing, ThePrivateKeyOfAnAuthorityThatWasLostMakesANewOne) {
  KeyRing ring = First();
  ring.authority_key.clear();
  const auto renewed = RenewAt(ring, kStart, ring.authorities);
  ASSERT_TRUE(renewed.has_value());
  EXPECT_EQ(AuthoritiesOf(*renewed), 2U);
  EXPECT_EQ(renewed->certificate, ring.certificate)
      << "it is good as long as the old one is trusted";
}

TEST(KeyRing, WhatCannotBeUsedIsMadeAnew) {
  const KeyRing ring = First();
  const KeyRing other = First();
  for (const auto& spoil : std::vector<void (*)(KeyRing&, const KeyRing&)>{
           [](KeyRing&it, const KeyRing&) { it.certificate = "nonsense"; },
           [](KeyRing&it, const KeyRing&) { it.key.clear(); },
           [](KeyRing&it, const KeyRing&from) { it.key = from.key; },
           [](KeyRing&it, const KeyRing&from) {
             it.certificate = from.certificate;
             it.key = from.key;
           },
           [](KeyRing&it, const KeyRing&) { it.authorities = it.authorities.substr(0, 100); }}) {
    KeyRing spoiled = ring;
    spoil(spoiled, other);
    const auto renewed = RenewAt(spoiled, kStart, ring.authorities);
    ASSERT_TRUE(renewed.has_value());
    EXPECT_TRUE(pki::IsSignedBy(renewed->certificate, renewed->authorities));
    EXPECT_TRUE(pki::Belongs(renewed->key, renewed->certificate));
    EXPECT_TRUE(pki::Belongs(renewed->authority_key, renewed->authorities));
  }
}

TEST(KeyRing, AnotherNameNeedsAnotherCertificate) {
  const KeyRing ring = First();
  Circumstances moved = At(kStart, ring.authorities);
  moved.dns_name = "cachewarm-webhook.elsewhere.svc";
  const auto renewed = *Renew(ring, moved);
  ASSERT_TRUE(renewed.has_value());
  EXPECT_EQ(renewed->authorities, ring.authorities);
  EXPECT_EQ(pki::ParseCertificates(renewed->certificate)->front().dns_names.front(),
            moved.dns_name);
}

TEST(KeyRing, AClockThatGoesBackMakesNoEndOfAuthorities) {
  KeyRing ring = First();
  for (int i = 0; i < 8; ++i) {
    if (const auto renewed = RenewAt(ring, kStart - i * 3651 * kDay, ring.authorities)) {
      ring = *renewed;
    }
    EXPECT_LE(AuthoritiesOf(ring), 4U);
  }
}

}  // namespace
}  // namespace cachewarm::webhook

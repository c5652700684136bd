// SPDX-License-Identifier: Apache-2.0
#include "lib/pki/certificates.h"

#include <cstdlib>
#include <fstream>
#include <random>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::pki {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const WallTime kNow = *ParseTime("2026-11-21T08:00:00Z");
constexpr std::chrono::hours kDay{24};
const Validity kLong{.from = kNow - kDay, .until = kNow + 3650 * kDay};
const Validity kShort{.from = kNow, .until = kNow + 90 * kDay};

TEST(Authority, HasNameAndValidity) {
  const auto pair = MakeAuthority("cachewarm", kLong);
  ASSERT_TRUE(pair.ok()) << pair.status();
  const auto read = ParseCertificates(pair->certificate);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ(read->front().from, kLong.from);
  EXPECT_EQ(read->front().until, kLong.until);
  EXPECT_EQ(read->front().pem, pair->certificate);
  EXPECT_TRUE(KeyMatches(pair->key, pair->certificate));
  EXPECT_TRUE(IsSignedBy(pair->certificate, pair->certificate));
  EXPECT_NE(*MakeAuthority("cachewarm", kLong), *pair);
}

TEST(Serving, IsSignedByItsAuthorityForItsNames) {
  const auto authority = *MakeAuthority("authority", kLong);
  const auto other = *MakeAuthority("authority", kLong);
  const std::string name = "cachewarm-webhook." + std::string(60, 'n') + ".svc";
  const auto pair = IssueServing(authority, {name, "short"}, kShort);
  ASSERT_TRUE(pair.ok()) << pair.status();
  const auto read = *ParseCertificates(pair->certificate);
  EXPECT_THAT(read.front().dns_names, ElementsAre(name, "short"));
  EXPECT_EQ(read.front().from, kShort.from);
  EXPECT_EQ(read.front().until, kShort.until);
  EXPECT_TRUE(IsSignedBy(pair->certificate, authority.certificate));
  EXPECT_FALSE(IsSignedBy(pair->certificate, other.certificate));
  EXPECT_TRUE(KeyMatches(pair->key, pair->certificate));
  EXPECT_FALSE(KeyMatches(authority.key, pair->certificate));
}

TEST(Serving, OpensslAcceptsItForItsPurpose) {
  const auto authority = *MakeAuthority("authority", kLong);
  const auto pair = *IssueServing(authority, {"a.b.svc"}, kShort);
  const TempDir folder;
  std::ofstream(folder.path() + "/ca.crt") << authority.certificate;
  std::ofstream(folder.path() + "/tls.crt") << pair.certificate;
  const auto verify = [&](const std::string& words) {
    return std::system(fmt::format("openssl verify -x509_strict -attime {} -CAfile {}/ca.crt {} "
                                   "{}/tls.crt >/dev/null 2>&1",
                                   (kNow + kDay).time_since_epoch().count() / 1000, folder.path(),
                                   words, folder.path())
                           .c_str());
  };
  EXPECT_EQ(verify("-purpose sslserver -verify_hostname a.b.svc"), 0);
  EXPECT_NE(verify("-purpose sslserver -verify_hostname other.svc"), 0);
  EXPECT_NE(verify("-purpose sslclient"), 0);
}

TEST(Serving, RequiresReadableAuthorityAndName) {
  const auto authority = *MakeAuthority("authority", kLong);
  EXPECT_TRUE(absl::IsInvalidArgument(IssueServing({}, {"a"}, kShort).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      IssueServing({.certificate = authority.certificate, .key = "x"}, {"a"}, kShort).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(IssueServing(authority, {}, kShort).status()));
}

TEST(Parsing, ReturnsCertificatesInOrder) {
  const auto first = *MakeAuthority("first", kLong);
  const auto second = *MakeAuthority("second", kShort);
  const auto read = ParseCertificates("text before\n" + first.certificate + second.certificate);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ(read->at(0).pem, first.certificate);
  EXPECT_EQ(read->at(1).until, kShort.until);
}

TEST(Parsing, RejectsTruncatedOrOversizedPem) {
  const auto pair = *MakeAuthority("authority", kLong);
  EXPECT_THAT(Message(ParseCertificates("").status()), HasSubstr("CERTIFICATE"));
  EXPECT_FALSE(ParseCertificates(pair.key).ok());
  EXPECT_FALSE(ParseCertificates(pair.certificate + pair.certificate.substr(0, 200)).ok());
  std::string many;
  for (int i = 0; i < 33; ++i) {
    many += pair.certificate;
  }
  EXPECT_THAT(Message(ParseCertificates(many).status()), HasSubstr("more than 32"));
  EXPECT_THAT(Message(ParseCertificates(std::string(300'000, 'x')).status()),
              HasSubstr("larger than"));
}

TEST(Parsing, SurvivesDamagedPem) {
  const auto pair = *IssueServing(*MakeAuthority("authority", kLong), {"a.svc"}, kShort);
  std::mt19937 random(7);
  for (int i = 0; i < 400; ++i) {
    std::string bent = pair.certificate;
    bent[random() % bent.size()] = static_cast<char>(random() % 256);
    static_cast<void>(ParseCertificates(bent));
    static_cast<void>(IsSignedBy(bent, pair.certificate));
    static_cast<void>(KeyMatches(pair.key, bent));
  }
}

}  // namespace
}  // namespace cachewarm::pki

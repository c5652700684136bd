// SPDX-License-Identifier: Apache-2.0
#include "lib/base/digest.h"

#include <gtest/gtest.h>

#include <string>

namespace cachewarm {
namespace {

constexpr char kEmpty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(DigestOf, AgreesWithFips180) {
  EXPECT_EQ(DigestOf("").hex(), kEmpty);
  EXPECT_EQ(DigestOf("abc").hex(), kAbc);
  EXPECT_EQ(DigestOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").hex(),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(DigestOf(std::string(1'000'000, 'a')).hex(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DigestDoesNotDependOnChunking) {
  const std::string bytes(10'000, 'x');
  for (const size_t step : {1U, 63U, 64U, 65U, 4096U}) {
    Sha256 hash;
    for (size_t at = 0; at < bytes.size(); at += step) {
      hash.Update(std::string_view(bytes).substr(at, step));
    }
    EXPECT_EQ(hash.Finish(), DigestOf(bytes)) << step;
  }
}

TEST(Sha256, MoveKeepsHashedBytes) {
  Sha256 first;
  first.Update("a");
  Sha256 second = std::move(first);
  second.Update("bc");
  Sha256 third;
  third = std::move(second);
  EXPECT_EQ(third.Finish().hex(), kAbc);
}

TEST(Digest, RoundTripsText) {
  const Digest digest = DigestOf("abc");
  EXPECT_EQ(digest.ToString(), std::string("sha256:") + kAbc);
  const absl::StatusOr<Digest> parsed = Digest::Parse(digest.ToString());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, digest);
  EXPECT_EQ(Digest::FromHex(kAbc), digest);
  EXPECT_EQ(digest.Short(), "ba7816bf8f01");
}

TEST(Digest, RejectsMalformedText) {
  const std::string hex = kAbc;
  for (const std::string& bad :
       {std::string(), hex, "sha256:" + hex.substr(1), "sha256:" + hex + "0", "sha512:" + hex,
        "SHA256:" + hex, "sha256:" + std::string(64, 'G'), "sha256:" + std::string(64, 'A'),
        "sha256:../" + hex.substr(3), " sha256:" + hex, "sha256:" + hex + "\n",
        std::string(1'000'000, 'x')}) {
    const absl::Status status = Digest::Parse(bad).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad.substr(0, 80);
    EXPECT_LT(status.message().size(), 200U);
  }
}

TEST(Digest, EmptyDigestEqualsNoOther) {
  const Digest empty;
  EXPECT_TRUE(empty.empty());
  EXPECT_EQ(empty.ToString(), "");
  EXPECT_EQ(empty.Short(), "");
  EXPECT_NE(empty, DigestOf(""));
  EXPECT_LT(empty, DigestOf(""));
}

}  // namespace
}  // namespace cachewarm

// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/signature/signature.h"

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/artifact.h"
#include "lib/bundle/signature/envelope.h"
#include "tests/fakes/memory_store.h"
#include "tests/fakes/temp_dir.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using ::testing::HasSubstr;

constexpr char kRepository[] = "team/llama";

class SignatureTest : public ::testing::Test {
 protected:
  Digest PublishContent(const std::string& content) {
    const PackedSample sample = PackTree({{"a", {.content = content}}});
    EXPECT_TRUE(WriteSmallBlob(store_, kRepository, sample.layer, {}).ok());
    EXPECT_TRUE(WriteSmallBlob(store_, kRepository, sample.packed.config_text, {}).ok());
    return *store_.WriteManifest(kRepository, sample.packed.manifest_text, "", {});
  }
  // Signs with the key of kSignerPublic.
  SignatureCheck Check(const Digest& digest) {
    const auto check = CheckSignature(place_, digest, keys_, {});
    EXPECT_TRUE(check.ok()) << check.status();
    return check.value_or(SignatureCheck{.problem = "store"});
  }
  size_t Count(const Digest& digest) {
    return store_.Referrers(kRepository, digest, std::string(kSigstoreType), {})->size();
  }
  // Attaches these bytes as a signature of `digest`.
  void Attach(const Digest& digest, const std::string& bundle, const std::string& layer_type) {
    Artifact artifact{.type = std::string(kSigstoreType),
                      .config = *WriteSmallBlob(store_, kRepository, "{}", {}),
                      .layers = {*WriteSmallBlob(store_, kRepository, bundle, {})},
                      .subject = {.media_type = std::string(kManifestType), .digest = digest}};
    artifact.config.media_type = std::string(kEmptyType);
    artifact.layers[0].media_type = layer_type;
    ASSERT_TRUE(store_.WriteReferrer(kRepository, *WriteArtifact(artifact), {}).ok());
  }
  std::string SignedBy(const PrivateKey& key, const Digest& digest) {
    Envelope envelope = *StatementAbout(digest);
    envelope.signature = *key.Sign(SignedBytes(envelope));
    envelope.key_hint = key.public_key().hint();
    return *WriteSigstoreBundle(envelope);
  }

  MemoryStore store_;
  const RepositoryRef place_{store_, kRepository};
  const PrivateKey signer_ = *PrivateKey::Parse(kSigner);
  const PrivateKey other_key_ = *PrivateKey::Parse(kOtherSigner);
  const std::vector<PublicKey> keys_ = *PublicKey::Parse(kSignerPublic);
};

TEST_F(SignatureTest, AcceptsSignedBundle) {
  const Digest digest = PublishContent("x");
  EXPECT_FALSE(Check(digest).good);
  EXPECT_THAT(Check(digest).problem, HasSubstr("has no signature"));
  EXPECT_TRUE(*Sign(place_, digest, signer_, {}));
  EXPECT_TRUE(Check(digest).good) << Check(digest).problem;
}

TEST_F(SignatureTest, SigningAgainAddsNothing) {
  const Digest digest = PublishContent("x");
  EXPECT_TRUE(*Sign(place_, digest, signer_, {}));
  EXPECT_FALSE(*Sign(place_, digest, signer_, {}));
  EXPECT_EQ(Count(digest), 1U);
  EXPECT_TRUE(*Sign(place_, digest, other_key_, {}));
  EXPECT_EQ(Count(digest), 2U);
  EXPECT_TRUE(Check(digest).good);
}

TEST_F(SignatureTest, MissingBundleIsNotSigned) {
  EXPECT_TRUE(absl::IsNotFound(Sign(place_, DigestOf("nothing"), signer_, {}).status()));
}

TEST_F(SignatureTest, RejectsOtherKey) {
  const Digest digest = PublishContent("x");
  ASSERT_TRUE(*Sign(place_, digest, other_key_, {}));
  EXPECT_FALSE(Check(digest).good);
  EXPECT_THAT(Check(digest).problem, HasSubstr("another key"));
  EXPECT_THAT(Check(digest).problem, HasSubstr("cachewarm sign"));
}

TEST_F(SignatureTest, RejectsSignatureOfAnotherBundle) {
  const Digest digest = PublishContent("x");
  const Digest other = PublishContent("y");
  Attach(digest, SignedBy(signer_, other), std::string(kSigstoreType));
  EXPECT_FALSE(Check(digest).good);
  EXPECT_THAT(Check(digest).problem, HasSubstr("does not name"));
}

TEST_F(SignatureTest, RejectsEveryFlippedBit) {
  const Digest digest = PublishContent("x");
  const std::string good = SignedBy(signer_, digest);
  const Envelope envelope = *ParseSigstoreBundle(good);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bent = good;
    bent[i] = static_cast<char>(bent[i] ^ (1 << (i % 7)));
    const auto read = ParseSigstoreBundle(bent);
    const bool accepted = read.ok() &&
                          signer_.public_key().HasSigned(SignedBytes(*read), read->signature) &&
                          CheckStatement(*read, digest).ok();
    // Only the key hint, and fields that are not read, may change undetected.
    EXPECT_TRUE(!accepted ||
                (read->payload == envelope.payload && read->signature == envelope.signature))
        << i;
  }
}

TEST_F(SignatureTest, IgnoresUnrelatedReferrers) {
  const Digest digest = PublishContent("x");
  Attach(digest, "not json", std::string(kSigstoreType));
  Attach(digest, std::string(size_t{kSigstoreBytesMax} + 1, ' '), std::string(kSigstoreType));
  Attach(digest, SignedBy(signer_, digest), "text/plain");
  EXPECT_FALSE(Check(digest).good);
  EXPECT_TRUE(*Sign(place_, digest, signer_, {}));
  EXPECT_TRUE(Check(digest).good);
}

TEST_F(SignatureTest, ChecksLimitedNumberOfSignatures) {
  const Digest digest = PublishContent("x");
  for (size_t i = 0; i < kSignaturesMax; ++i) {
    Attach(digest, fmt::format("rubbish {}", i), std::string(kSigstoreType));
  }
  Attach(digest, SignedBy(signer_, digest), std::string(kSigstoreType));
  int reads = 0;
  store_.SetFault([&reads](std::string_view call) {
    reads += call == "ReadBlob" ? 1 : 0;
    return absl::OkStatus();
  });
  EXPECT_FALSE(Check(digest).good);
  EXPECT_EQ(reads, static_cast<int>(kSignaturesMax));
}

TEST_F(SignatureTest, StoreErrorIsNotAMissingSignature) {
  const Digest digest = PublishContent("x");
  ASSERT_TRUE(*Sign(place_, digest, signer_, {}));
  for (const std::string failing : {"Referrers", "ReadManifest", "ReadBlob"}) {
    store_.SetFault([&failing](std::string_view call) {
      return call == failing ? absl::UnavailableError("down") : absl::OkStatus();
    });
    EXPECT_TRUE(absl::IsUnavailable(CheckSignature(place_, digest, keys_, {}).status())) << failing;
  }
}

TEST_F(SignatureTest, CopiesSignaturesWithTheBundle) {
  const Digest digest = PublishContent("x");
  ASSERT_TRUE(*Sign(place_, digest, signer_, {}));
  ASSERT_TRUE(*Sign(place_, digest, other_key_, {}));
  Attach(digest, "not json", "text/plain");
  MemoryStore other;
  const RepositoryRef there{other, "elsewhere"};
  EXPECT_EQ(*CopySignatures(place_, there, digest, {}), 2);
  EXPECT_EQ(*CopySignatures(place_, there, digest, {}), 0);
  EXPECT_TRUE(CheckSignature(there, digest, keys_, {})->good);
  EXPECT_EQ(*CopySignatures(place_, there, DigestOf("unsigned"), {}), 0);
}

TEST(KeyFiles, ErrorNamesTheFile) {
  const TempDir temp;
  std::ofstream(temp / "key.pem") << kSigner;
  std::ofstream(temp / "key.pub") << kSignerPublic;
  EXPECT_TRUE(ReadPrivateKey(temp / "key.pem").ok());
  EXPECT_EQ(ReadPublicKeys(temp / "key.pub")->size(), 1U);
  for (const std::string name : {"none", "key.pub"}) {
    const auto key = ReadPrivateKey(temp / name);
    EXPECT_TRUE(absl::IsFailedPrecondition(key.status())) << name;
    EXPECT_THAT(Message(key.status()), HasSubstr(temp / name));
  }
  for (const std::string name : {"none", "key.pem"}) {
    const auto keys = ReadPublicKeys(temp / name);
    EXPECT_TRUE(absl::IsFailedPrecondition(keys.status())) << name;
    EXPECT_THAT(Message(keys.status()), HasSubstr(temp / name));
  }
}

}  // namespace
}  // namespace cachewarm::bundle

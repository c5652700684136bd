// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/signature/envelope.h"

#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/signature/keys.h"
#include "lib/codec/base64.h"
#include "tests/fakes/source_dir.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::bundle {
namespace {

using ::testing::HasSubstr;

const Digest kSubject =
    Digest::FromHex("a549e7784a01b4a3b549ca209f9b79faf334cb3f7cb2610818e816c4240e6aff");

std::string Sample(const std::string& name) {
  std::ifstream file(fakes::SourceDir() + "/tests/unit/lib/bundle/signature/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(SigstoreBundle, AcceptsSignatureOfCosign) {
  const auto envelope = ParseSigstoreBundle(Sample("cosign.sigstore.json"));
  ASSERT_TRUE(envelope.ok()) << envelope.status();
  const auto keys = PublicKey::Parse(Sample("cosign.pub"));
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_TRUE(keys->front().HasSigned(SignedBytes(*envelope), envelope->signature));
  EXPECT_EQ(keys->front().hint(), envelope->key_hint);
  EXPECT_TRUE(CheckStatement(*envelope, kSubject).ok()) << CheckStatement(*envelope, kSubject);
  EXPECT_FALSE(CheckStatement(*envelope, DigestOf("another")).ok());
}

TEST(SigstoreBundle, RoundTrips) {
  const Envelope envelope{.payload_type = "text/plain",
                          .payload = std::string("a\0b", 3),
                          .signature = "\xff\x00",
                          .key_hint = "hint"};
  const auto read = ParseSigstoreBundle(*WriteSigstoreBundle(envelope));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->payload_type, envelope.payload_type);
  EXPECT_EQ(read->payload, envelope.payload);
  EXPECT_EQ(read->signature, envelope.signature);
  EXPECT_EQ(read->key_hint, envelope.key_hint);
}

// https://github.com/secure-systems-lab/dsse/blob/v1.0.0/protocol.md, "PAE".
TEST(SigstoreBundle, SignsThePreAuthenticationEncoding) {
  EXPECT_EQ(
      SignedBytes({.payload_type = "http://example.com/HelloWorld", .payload = "hello world"}),
      "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
}

TEST(SigstoreBundle, MalformedBundleErrorNamesField) {
  const std::string good = Sample("cosign.sigstore.json");
  const struct {
    std::string text;
    std::string field;
  } cases[] = {
      {"", ""},
      {"[]", "document"},
      {Changed(good, "v0.3", "v0.1"), "mediaType"},
      {Changed(good, "publicKey", "certificate"), "verificationMaterial.publicKey"},
      {Changed(good, "dsseEnvelope", "messageSignature"), "dsseEnvelope: is required"},
      {Changed(good, R"("signatures":[)", R"("signatures":[{"sig":"aGk="},)"), "signatures"},
      {Changed(good, R"("sig":")", R"("sig":"!)"), "sig"},
      {Changed(good, R"("sig")", R"("gis")"), "sig: is required"},
      {Changed(good, R"("payload":")", R"("payload":"!)"), "payload"},
      {good + std::string(size_t{kSigstoreBytesMax}, ' '), ""}};
  for (const auto& c : cases) {
    const auto read = ParseSigstoreBundle(c.text);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << c.field << read.status();
    EXPECT_THAT(Message(read.status()), HasSubstr(c.field));
  }
}

TEST(Statement, CoversExactlyItsDigest) {
  const Envelope good = *StatementAbout(kSubject);
  EXPECT_TRUE(CheckStatement(good, kSubject).ok());
  const struct {
    std::string from;
    std::string to;
    std::string field;
  } cases[] = {{"cosign/sign/v1", "cosign/custom/v1", "predicateType"},
               {"Statement/v1", "Statement/v9", "_type"},
               {kSubject.hex(), DigestOf("another").hex(), "subject"},
               {kSubject.hex(), kSubject.hex().substr(1), "subject"},
               {"sha256", "sha512", "subject"},
               {R"("subject":[)", R"("objects":[)", "subject"},
               {R"("subject":[{)", R"("subject":[1,{)", "subject"},
               {"{", "[", ""}};
  for (const auto& c : cases) {
    Envelope changed = good;
    changed.payload = Changed(good.payload, c.from, c.to);
    const absl::Status status = CheckStatement(changed, kSubject);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.to;
    EXPECT_THAT(Message(status), HasSubstr(c.field));
  }
  Envelope typed = good;
  typed.payload_type = "text/plain";
  EXPECT_FALSE(CheckStatement(typed, kSubject).ok());
}

TEST(Keys, VerifyOnlyTheirOwnSignatures) {
  const auto signer = PrivateKey::Parse(kSigner);
  ASSERT_TRUE(signer.ok()) << signer.status();
  const auto keys = PublicKey::Parse(kSignerPublic);
  ASSERT_TRUE(keys.ok()) << keys.status();
  const std::string signature = *signer->Sign("message");
  EXPECT_TRUE(keys->front().HasSigned("message", signature));
  EXPECT_TRUE(signer->public_key().HasSigned("message", signature));
  EXPECT_EQ(keys->front().hint(), signer->public_key().hint());
  EXPECT_FALSE(keys->front().HasSigned("massage", signature));
  EXPECT_FALSE(PublicKey::Parse(kOtherSignerPublic)->front().HasSigned("message", signature));
  for (size_t i = 0; i < signature.size(); ++i) {
    std::string bent = signature;
    bent[i] = static_cast<char>(bent[i] ^ 1);
    EXPECT_FALSE(keys->front().HasSigned("message", bent)) << i;
    EXPECT_FALSE(keys->front().HasSigned("message", signature.substr(0, i))) << i;
  }
}

TEST(Keys, Sec1FormIsTheSameKey) {
  const auto signer = PrivateKey::Parse(kSignerOldForm);
  ASSERT_TRUE(signer.ok()) << signer.status();
  EXPECT_EQ(signer->public_key().hint(), PublicKey::Parse(kSignerPublic)->front().hint());
}

TEST(Keys, FileMayHoldSeveralKeys) {
  const auto keys =
      PublicKey::Parse(std::string(kOtherSignerPublic) + "\n# next\n" + kSignerPublic);
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->size(), 2U);
  std::string many;
  for (int i = 0; i < 17; ++i) {
    many += kSignerPublic;
  }
  EXPECT_FALSE(PublicKey::Parse(many).ok());
}

TEST(Keys, UnsupportedKeyErrorNamesRemedy) {
  const std::string half = std::string(kSignerPublic).substr(0, 80);
  const struct {
    std::string pem;
    std::string remedy;
  } public_cases[] = {{"", "cosign.pub"},
                      {"not PEM", "cosign.pub"},
                      {half, "cosign.pub"},
                      {kSignerPublic + half, "cosign.pub"},
                      {kSigner, "openssl pkey -pubout"},
                      {kP384Public, "P-256"},
                      {kEd25519Public, "P-256"},
                      {std::string(100'000, 'x'), "larger than"}};
  for (const auto& c : public_cases) {
    const auto keys = PublicKey::Parse(c.pem);
    EXPECT_TRUE(absl::IsInvalidArgument(keys.status())) << c.pem;
    EXPECT_THAT(Message(keys.status()), HasSubstr(c.remedy)) << c.pem;
  }
  const struct {
    std::string pem;
    std::string remedy;
  } private_cases[] = {{"", "openssl genpkey"},
                       {kSignerPublic, "openssl genpkey"},
                       {kSignerEncrypted, "openssl pkey -in FILE"},
                       {"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n", "cosign sign instead"},
                       {"-----BEGIN ENCRYPTED COSIGN PRIVATE KEY-----\n", "cosign sign instead"},
                       {kP384, "P-256"},
                       {kEd25519, "P-256"},
                       {std::string(100'000, 'x'), "larger than"}};
  for (const auto& c : private_cases) {
    const auto key = PrivateKey::Parse(c.pem);
    EXPECT_TRUE(absl::IsInvalidArgument(key.status())) << c.pem;
    EXPECT_THAT(Message(key.status()), HasSubstr(c.remedy)) << c.pem;
  }
}

}  // namespace
}  // namespace cachewarm::bundle

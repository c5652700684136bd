// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/signature/envelope.h"

#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/base64.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"

namespace cachewarm::bundle {
namespace {

using codec::Json;
using codec::Reader;

constexpr char kPayloadType[] = "application/vnd.in-toto+json";
constexpr char kStatementType[] = "https://in-toto.io/Statement/v1";
constexpr size_t kSubjectsMax = 64;
constexpr size_t kHintBytesMax = 1024;
constexpr size_t kSignatureBytesMax = 4096;

void ReadBytes(Reader& reader, std::string_view name, size_t bytes_max, std::string& out) {
  std::string text;
  reader.Require(name).Read(name, text, bytes_max);
  if (!reader.status().ok()) {
    return;
  }
  auto bytes = codec::DecodeBase64(text);
  if (!bytes.ok()) {
    reader.Fail(name, Message(bytes.status()));
    return;
  }
  out = *std::move(bytes);
}

void ReadEnvelope(Reader& reader, Envelope& envelope) {
  ReadBytes(reader, "payload", size_t{kSigstoreBytesMax}, envelope.payload);
  reader.Require("payloadType").Read("payloadType", envelope.payload_type, 255);
  size_t signatures = 0;
  reader.Require("signatures").List("signatures", 1, [&](Reader& each) {
    ++signatures;
    ReadBytes(each, "sig", kSignatureBytesMax, envelope.signature);
  });
  if (reader.status().ok() && signatures != 1) {
    reader.Fail("signatures", "expected exactly one signature");
  }
}

}  // namespace

std::string SignedBytes(const Envelope& envelope) {
  return fmt::format("DSSEv1 {} {} {} {}", envelope.payload_type.size(), envelope.payload_type,
                     envelope.payload.size(), envelope.payload);
}

absl::StatusOr<std::string> WriteSigstoreBundle(const Envelope& envelope) {
  Json signature = {{"sig", codec::EncodeBase64(envelope.signature)}};
  Json signatures = Json::array();
  signatures.push_back(std::move(signature));
  Json dsse = {{"payload", codec::EncodeBase64(envelope.payload)},
               {"payloadType", envelope.payload_type},
               {"signatures", std::move(signatures)}};
  Json key = {{"hint", envelope.key_hint}};
  Json material = {{"publicKey", std::move(key)}};
  return codec::CanonicalJson({{"mediaType", kSigstoreType},
                               {"verificationMaterial", std::move(material)},
                               {"dsseEnvelope", std::move(dsse)}});
}

absl::StatusOr<Envelope> ParseSigstoreBundle(std::string_view text) {
  CW_ASSIGN_OR_RETURN(const Json json,
                      codec::ParseJson(text, {.bytes_max = size_t{kSigstoreBytesMax}}));
  Envelope envelope;
  Reader reader(json, "");
  std::string media_type;
  reader.Require("mediaType").Read("mediaType", media_type, 255);
  if (reader.status().ok() && media_type != kSigstoreType) {
    reader.Fail("mediaType", fmt::format("expected \"{}\"", kSigstoreType));
  }
  reader.Require("verificationMaterial").Object("verificationMaterial", [&](Reader& material) {
    material.Require("publicKey").Object("publicKey", [&](Reader& key) {
      key.Read("hint", envelope.key_hint, kHintBytesMax);
    });
  });
  reader.Require("dsseEnvelope").Object("dsseEnvelope", [&](Reader& each) {
    ReadEnvelope(each, envelope);
  });
  CW_RETURN_IF_ERROR(Annotate(reader.status(), "sigstore bundle"));
  return envelope;
}

absl::StatusOr<Envelope> StatementAbout(const Digest& digest) {
  Json digests = {{"sha256", digest.hex()}};
  Json subject = {{"digest", std::move(digests)}};
  Json subjects = Json::array();
  subjects.push_back(std::move(subject));
  CW_ASSIGN_OR_RETURN(std::string statement,
                      codec::CanonicalJson({{"_type", kStatementType},
                                            {"subject", std::move(subjects)},
                                            {"predicateType", kSignPredicate},
                                            {"predicate", Json::object()}}));
  return Envelope{.payload_type = kPayloadType, .payload = std::move(statement)};
}

absl::Status CheckStatement(const Envelope& envelope, const Digest& digest) {
  if (envelope.payload_type != kPayloadType) {
    return absl::InvalidArgumentError("sigstore bundle: the payload is not an in-toto statement");
  }
  CW_ASSIGN_OR_RETURN(const Json json,
                      codec::ParseJson(envelope.payload, {.bytes_max = size_t{kSigstoreBytesMax}}));
  Reader reader(json, "");
  std::string type;
  std::string predicate;
  bool named = false;
  reader.Require("_type").Read("_type", type);
  reader.Require("predicateType").Read("predicateType", predicate);
  reader.List("subject", kSubjectsMax, [&](Reader& subject) {
    subject.Object("digest", [&](Reader& digests) {
      std::string hex;
      digests.Read("sha256", hex);
      named = named || hex == digest.hex();
    });
  });
  if (reader.status().ok() && type != kStatementType) {
    reader.Fail("_type", fmt::format("expected \"{}\"", kStatementType));
  }
  if (reader.status().ok() && predicate != kSignPredicate) {
    reader.Fail("predicateType", fmt::format("expected \"{}\"", kSignPredicate));
  }
  if (reader.status().ok() && !named) {
    reader.Fail("subject", fmt::format("does not name {}", digest.ToString()));
  }
  return Annotate(reader.status(), "signed statement");
}

}  // namespace cachewarm::bundle

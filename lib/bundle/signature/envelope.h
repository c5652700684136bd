// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/digest.h"

// What `cosign sign --key` (2.6 and newer) attaches to a manifest, as bytes: a sigstore bundle v0.3
// (protobuf-specs, "sigstore_bundle.proto") with a DSSE envelope (secure-systems-lab/dsse v1)
// around an in-toto statement v1 whose subject is the manifest's digest. Pure.
namespace cachewarm::bundle {

inline constexpr std::string_view kSigstoreType = "application/vnd.dev.sigstore.bundle.v0.3+json";
// What the statement says: "this was signed", and no attestation of anything else.
inline constexpr std::string_view kSignPredicate = "https://sigstore.dev/cosign/sign/v1";
inline constexpr int64_t kSigstoreBytesMax = 256 << 10;

struct Envelope {
  std::string payload_type;
  std::string payload;    // the statement's text
  std::string signature;  // of SignedBytes()
  std::string key_hint;   // which key to try; nobody vouches for it
};

// DSSE "PAE": what the signature is over.
std::string SignedBytes(const Envelope& envelope);

absl::StatusOr<std::string> WriteSigstoreBundle(const Envelope& envelope);
// INVALID_ARGUMENT naming the field: another version, a certificate or message signature instead of
// a key and an envelope, more or less than one signature.
absl::StatusOr<Envelope> ParseSigstoreBundle(std::string_view text);

// The unsigned envelope of a statement about `digest`.
absl::StatusOr<Envelope> StatementAbout(const Digest& digest);
// INVALID_ARGUMENT unless the envelope's statement says that `digest` was signed. To be called with
// an envelope whose signature is good.
absl::Status CheckStatement(const Envelope& envelope, const Digest& digest);

}  // namespace cachewarm::bundle

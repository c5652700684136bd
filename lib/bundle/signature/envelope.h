// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/digest.h"

// Reads and writes the signatures that `cosign sign --key` (2.6 and newer) attaches to a manifest:
// a sigstore bundle v0.3 (protobuf-specs, "sigstore_bundle.proto") with a DSSE envelope
// (secure-systems-lab/dsse v1) around an in-toto statement v1 whose subject is the manifest's
// digest. Pure.
namespace cachewarm::bundle {

inline constexpr std::string_view kSigstoreType = "application/vnd.dev.sigstore.bundle.v0.3+json";
// Predicate type of the statement in a plain signature, as opposed to an attestation.
inline constexpr std::string_view kSignPredicate = "https://sigstore.dev/cosign/sign/v1";
inline constexpr int64_t kSigstoreBytesMax = 256 << 10;

struct Envelope {
  std::string payload_type;
  std::string payload;    // text of the statement
  std::string signature;  // signature of the bytes that SignedBytes() returns
  std::string key_hint;   // identifies the key; not signed, so do not rely on it
};

// Returns the bytes that are signed (DSSE "PAE").
std::string SignedBytes(const Envelope& envelope);

absl::StatusOr<std::string> WriteSigstoreBundle(const Envelope& envelope);
// Parses a sigstore bundle. It must have the version of kSigstoreType, a public key (not a
// certificate), and a DSSE envelope (not a message signature) with exactly one signature. Otherwise
// INVALID_ARGUMENT, naming the field.
absl::StatusOr<Envelope> ParseSigstoreBundle(std::string_view text);

// Returns an unsigned envelope with a statement about `digest`.
absl::StatusOr<Envelope> StatementAbout(const Digest& digest);
// Checks that the statement in the envelope is a plain signature of `digest`; INVALID_ARGUMENT if
// not. Verify the envelope's signature first.
absl::Status CheckStatement(const Envelope& envelope, const Digest& digest);

}  // namespace cachewarm::bundle

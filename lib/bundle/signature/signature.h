// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/bundle/signature/keys.h"
#include "lib/bundle/transfer.h"

// Signs bundles in a store and verifies their signatures. A signature is an OCI referrer of the
// bundle's manifest with the artifact type kSigstoreType, compatible with key-based signatures of
// cosign 2.6 and newer. Works offline: uses no transparency log, no certificates and no clock.
// Every function blocks, and returns CANCELLED soon after `stop`.
namespace cachewarm::bundle {

// Maximum number of signatures that are checked for one bundle.
inline constexpr size_t kSignaturesMax = 64;

struct SignatureCheck {
  bool good = false;    // one of the keys has signed this digest
  std::string problem;  // message for users, with the remedy, if not `good`
};

// Looks for a signature of `digest` by any of `keys`. Skips malformed signatures and those of other
// keys; returns an error only if the store fails.
absl::StatusOr<SignatureCheck> CheckSignature(const RepositoryRef& ref, const Digest& digest,
                                              std::span<const PublicKey> keys,
                                              std::stop_token stop);

// Signs the bundle `digest`, which must be in the store. Returns false and writes nothing if the
// key has signed it already.
absl::StatusOr<bool> Sign(const RepositoryRef& ref, const Digest& digest, const PrivateKey& key,
                          std::stop_token stop);

// Copies the signatures of `digest` that `to` lacks, regardless of their keys. Considers the first
// kSignaturesMax signatures of `from` and skips malformed ones. Returns the number of copied
// signatures.
absl::StatusOr<int> CopySignatures(const RepositoryRef& from, const RepositoryRef& to,
                                   const Digest& digest, std::stop_token stop);

}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/bundle/signature/keys.h"
#include "lib/bundle/transfer.h"

// Signatures beside bundles in a store: each is a manifest about the bundle's (OCI "referrer") of
// artifact type kSigstoreType, as cosign 2.6 and newer writes and reads it with a key. Offline: no
// transparency log, no certificate, no clock.
namespace cachewarm::bundle {

// At most so many signatures of one bundle are looked at.
inline constexpr size_t kSignaturesMax = 64;

struct SignatureCheck {
  bool good = false;    // one of the keys signed exactly this digest
  std::string problem;  // why not, for people, with the remedy
};

// Looks for a signature of `digest` by any of `keys`. What is attached and malformed, or by
// somebody else, is passed over; an error is the store's.
absl::StatusOr<SignatureCheck> CheckSignature(const RepositoryRef& ref, const Digest& digest,
                                              std::span<const PublicKey> keys,
                                              std::stop_token stop);

// Signs the bundle `digest`, which must be in the store. False: this key had signed it already, and
// nothing was written.
absl::StatusOr<bool> Sign(const RepositoryRef& ref, const Digest& digest, const PrivateKey& key,
                          std::stop_token stop);

// Copies what `from` has as signatures of `digest` and `to` lacks, whoever made them. Returns how
// many.
absl::StatusOr<int> CopySignatures(const RepositoryRef& from, const RepositoryRef& to,
                                   const Digest& digest, std::stop_token stop);

}  // namespace cachewarm::bundle

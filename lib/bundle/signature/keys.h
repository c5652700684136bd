// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

// Keys of `cosign generate-key-pair` and `openssl`: ECDSA on the curve P-256 with SHA-256. (cosign
// 3.1 signs with Ed25519 keys too, but does not verify what it signed.)
namespace cachewarm::bundle {

// Thread-safe; copies share what they hold.
class PublicKey {
 public:
  // Every "PUBLIC KEY" of a PEM text, at least one and at most 16: one is enough to have signed, so
  // that a new key can be introduced beside the old one. INVALID_ARGUMENT with what was found
  // instead.
  static absl::StatusOr<std::vector<PublicKey>> Parse(std::string_view pem);

  // True: `signature` (ASN.1) over `message` was made with the private half. Any bytes may be
  // given.
  bool HasSigned(std::string_view message, std::string_view signature) const;
  // base64 of the SHA-256 of its SubjectPublicKeyInfo, as cosign writes it.
  const std::string& hint() const { return hint_; }

 private:
  friend class PrivateKey;
  struct State;
  PublicKey(std::shared_ptr<const State> state, std::string hint);

  std::shared_ptr<const State> state_;
  std::string hint_;
};

// Thread-safe.
class PrivateKey {
 public:
  // One "PRIVATE KEY" or "EC PRIVATE KEY" of a PEM text, not encrypted. INVALID_ARGUMENT with the
  // remedy for anything else.
  static absl::StatusOr<PrivateKey> Parse(std::string_view pem);

  absl::StatusOr<std::string> Sign(std::string_view message) const;
  const PublicKey& public_key() const { return public_key_; }

 private:
  explicit PrivateKey(PublicKey public_key) : public_key_(std::move(public_key)) {}

  PublicKey public_key_;  // its state holds the private half too
};

// Files of the administrator; empty: not used.
struct KeyFiles {
  std::string public_key_file;   // only what one of these keys signed is taken
  std::string private_key_file;  // signs what is published
};

// The same from the administrator's file of at most 64 KiB, read now: links are followed, and a
// rotated Secret counts. FAILED_PRECONDITION, naming the file, when that cannot be done.
absl::StatusOr<std::vector<PublicKey>> ReadPublicKeys(const std::string& path);
absl::StatusOr<PrivateKey> ReadPrivateKey(const std::string& path);

}  // namespace cachewarm::bundle

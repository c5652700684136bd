// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

// Reads keys: ECDSA on the curve P-256, used with SHA-256. Public keys may come from `cosign
// generate-key-pair` or `openssl`. Private keys must come from `openssl`: cosign encrypts its
// private keys in a format that is not supported here. Ed25519 keys are rejected: cosign 3.1 signs
// with them, but does not verify these signatures.
namespace cachewarm::bundle {

// Thread-safe; copies share the key.
class PublicKey {
 public:
  // Parses a PEM text of 1 to 16 "PUBLIC KEY" blocks. A signature by any of these keys is accepted,
  // so that a new key can be introduced beside the old one. INVALID_ARGUMENT, naming the problem,
  // for any other text.
  static absl::StatusOr<std::vector<PublicKey>> Parse(std::string_view pem);

  // True if `signature` (ASN.1) over `message` was made with the private key that belongs to this
  // key; false also for a malformed signature.
  bool HasSigned(std::string_view message, std::string_view signature) const;
  // Returns base64 of the SHA-256 of the SubjectPublicKeyInfo: the key hint that cosign writes.
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
  // Parses an unencrypted "PRIVATE KEY" or "EC PRIVATE KEY" of a PEM text. INVALID_ARGUMENT, with
  // the remedy, for anything else.
  static absl::StatusOr<PrivateKey> Parse(std::string_view pem);

  // Returns the signature (ASN.1) of `message`.
  absl::StatusOr<std::string> Sign(std::string_view message) const;
  const PublicKey& public_key() const { return public_key_; }

 private:
  explicit PrivateKey(PublicKey public_key) : public_key_(std::move(public_key)) {}

  PublicKey public_key_;  // its state also holds the private key
};

// Paths of the administrator's key files; empty: not used.
struct KeyFiles {
  std::string public_key_file;   // only bundles signed by one of these keys are accepted
  std::string private_key_file;  // signs published bundles
};

// Read the keys in one of the administrator's key files, which may have at most 64 KiB. Both
// functions follow links, and read the file on every call, so that a rotated Secret takes effect.
// FAILED_PRECONDITION, naming the file, if it cannot be read or parsed.
absl::StatusOr<std::vector<PublicKey>> ReadPublicKeys(const std::string& path);
absl::StatusOr<PrivateKey> ReadPrivateKey(const std::string& path);

}  // namespace cachewarm::bundle

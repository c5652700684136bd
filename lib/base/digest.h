// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cachewarm {

// A digest in the form of OCI image-spec 1.1 §descriptor: "sha256:" and 64 lower-case hex digits.
// No other algorithm is accepted. A default-constructed Digest is empty and differs from every
// parsed one.
class Digest {
 public:
  Digest() = default;
  static absl::StatusOr<Digest> Parse(std::string_view text);
  static Digest FromHex(std::string_view hex);  // `hex` must be 64 lower-case hex digits

  bool empty() const { return hex_.empty(); }
  const std::string& hex() const { return hex_; }
  std::string ToString() const { return empty() ? std::string() : "sha256:" + hex_; }
  // Returns the first 12 hex digits, for messages and file names. Never compare digests by them.
  std::string Short() const { return hex_.substr(0, 12); }

  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;

 private:
  std::string hex_;
};

// Streaming SHA-256. Not thread-safe; Finish() may be called once.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void Update(std::string_view bytes);
  Digest Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Digest DigestOf(std::string_view bytes);

}  // namespace cachewarm

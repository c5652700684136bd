// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"

// X.509 certificates with ECDSA keys on P-256, as PEM texts. Random numbers come from OpenSSL; the
// time is an argument. Thread-safe.
namespace cachewarm::pki {

// A certificate and its private key (PKCS #8).
struct KeyPair {
  std::string certificate;
  std::string key;
  friend bool operator==(const KeyPair&, const KeyPair&) = default;
};

struct Validity {
  WallTime from{};
  WallTime until{};
};

// Creates a certificate authority with the common name `name`. The authority can sign serving
// certificates but no other authority (pathlen 0).
absl::StatusOr<KeyPair> MakeAuthority(const std::string& name, const Validity& validity);

// Issues a serving certificate for `dns_names`, signed by `authority`. The common name is the first
// 64 bytes of the first name. INVALID_ARGUMENT if the authority cannot be parsed or `dns_names` is
// empty.
absl::StatusOr<KeyPair> IssueServing(const KeyPair& authority,
                                     const std::vector<std::string>& dns_names,
                                     const Validity& validity);

// One certificate of a PEM text.
struct Certificate {
  std::string pem;
  WallTime from{};
  WallTime until{};
  std::vector<std::string> dns_names;
};

// Returns every certificate of a PEM text of at most 256 KiB, in order. INVALID_ARGUMENT if there
// is none, more than 32, or one that cannot be read. Safe for untrusted input.
absl::StatusOr<std::vector<Certificate>> ParseCertificates(std::string_view pem);

// Returns true if the key of `authority` signed `certificate`. Both are PEM texts, of which only
// the first certificate counts. False if either cannot be parsed.
bool IsSignedBy(std::string_view certificate, std::string_view authority);
// Returns true if `key` is the private key of the first certificate in `certificate`. False if
// either cannot be parsed.
bool KeyMatches(std::string_view key, std::string_view certificate);

}  // namespace cachewarm::pki

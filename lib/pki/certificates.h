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
struct Pair {
  std::string certificate;
  std::string key;
  friend bool operator==(const Pair&, const Pair&) = default;
};

struct Validity {
  WallTime from{};
  WallTime until{};
};

// An authority that signs serving certificates and nothing below itself (pathlen 0). `name` is its
// common name.
absl::StatusOr<Pair> MakeAuthority(const std::string& name, const Validity& validity);

// A serving certificate for `dns_names`, the first of which is its common name (at most 64 bytes of
// it), signed by `authority`. INVALID_ARGUMENT when the authority cannot be read.
absl::StatusOr<Pair> IssueServing(const Pair& authority, const std::vector<std::string>& dns_names,
                                  const Validity& validity);

// One certificate of a PEM text.
struct Certificate {
  std::string pem;
  WallTime from{};
  WallTime until{};
  std::vector<std::string> dns_names;
};

// Every certificate of a PEM text of at most 256 KiB, in its order; INVALID_ARGUMENT when there is
// none, more than 32, or one that cannot be read. Any bytes may be given.
absl::StatusOr<std::vector<Certificate>> ParseCertificates(std::string_view pem);

// True when `certificate` was signed by the key of `authority`.
bool IsSignedBy(std::string_view certificate, std::string_view authority);
// True when `key` is the private half of the first certificate.
bool Belongs(std::string_view key, std::string_view certificate);

}  // namespace cachewarm::pki

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"

// Decides when to renew the webhook's certificates, and renews them. Takes the stored certificates
// and the time as arguments. Pure, except for the random numbers of new keys (lib/pki).
namespace cachewarm::webhook {

// Content of the webhook's Secret as PEM texts; "" for an absent entry. An authority is valid for
// 10 years, a serving certificate for 90 days. Each is renewed when a third of its lifetime is
// left.
struct CertificateBundle {
  std::string authorities;    // trusted CA certificates, newest first; written to the caBundle
  std::string authority_key;  // private key of the first authority
  std::string certificate;    // serving certificate
  std::string key;
  friend bool operator==(const CertificateBundle&, const CertificateBundle&) = default;
};

struct RenewalInputs {
  WallTime now{};
  std::string dns_name;   // name under which the API server calls the webhook
  std::string ca_bundle;  // present caBundle of the webhook configuration; may be invalid
};

// Returns the renewed bundle; nullopt if nothing must be renewed. After a new authority is made,
// the serving certificate signed by the old one is kept until `ca_bundle` contains the new
// authority, so that API servers trust the served certificate at any time. If no valid serving
// certificate is left, renews authority and serving certificate at once. Invalid entries of
// `bundle` are replaced.
absl::StatusOr<std::optional<CertificateBundle>> Renew(const CertificateBundle& bundle,
                                                       const RenewalInputs& inputs);

}  // namespace cachewarm::webhook

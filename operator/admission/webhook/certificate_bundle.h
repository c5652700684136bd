// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"

// Decides when to renew the webhook's certificates. Reads neither the cluster nor a clock: takes
// the stored bundle and the time. Pure, except for the random numbers of new keys (lib/pki).
namespace cachewarm::webhook {

// The Secret's content as PEM texts; "" if absent. An authority is valid for 10 years, a serving
// certificate for 90 days. Each is renewed when a third of its lifetime is left.
struct CertificateBundle {
  std::string authorities;    // trusted CA certificates, newest first; becomes the caBundle
  std::string authority_key;  // private key of the first authority
  std::string certificate;    // serving certificate
  std::string key;
  friend bool operator==(const CertificateBundle&, const CertificateBundle&) = default;
};

struct RenewalInputs {
  WallTime now{};
  std::string dns_name;   // name under which the API server calls the webhook
  std::string ca_bundle;  // caBundle at present; may be any text
};

// Returns the bundle to store instead of `bundle`; nullopt while `bundle` is valid. Adds a new
// authority to the caBundle before issuing a serving certificate from it. If no valid serving
// certificate is left, renews both at once. Tolerates any text in `bundle`.
absl::StatusOr<std::optional<CertificateBundle>> Renew(const CertificateBundle& bundle,
                                                       const RenewalInputs& inputs);

}  // namespace cachewarm::webhook

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"

// When the certificates of the webhook are made anew. Decides from what is stored and the time; no
// I/O. Random numbers for new keys come from lib/pki.
namespace cachewarm::webhook {

// What the Secret holds, as PEM texts; "" what it does not. An authority is trusted for 10 years, a
// serving certificate for 90 days; either is replaced once a third of its time is left.
struct CertificateBundle {
  std::string authorities;    // who is to be trusted, the newest first: what the caBundle becomes
  std::string authority_key;  // of the first of them
  std::string certificate;    // of the server
  std::string key;
  friend bool operator==(const CertificateBundle&, const CertificateBundle&) = default;
};

struct RenewalInputs {
  WallTime now{};
  std::string dns_name;   // that the API server calls the webhook by
  std::string ca_bundle;  // the caBundle that it trusts at the moment; any text
};

// The bundle that is to be stored instead of `bundle`; nothing while it is good. A new authority is
// ca_bundle beside the old one first; only then a certificate of its own is made. Where no
// certificate is left that could be shown, both are made at once. Any texts may be in `bundle`.
absl::StatusOr<std::optional<CertificateBundle>> Renew(const CertificateBundle& bundle,
                                                       const RenewalInputs& inputs);

}  // namespace cachewarm::webhook

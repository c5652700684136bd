// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/client/client.h"
#include "operator/webhook/certificate_bundle.h"

// Reads the cluster's admission configuration. Reads and writes the Secret that contains the
// webhook's certificates. Every call blocks.
namespace cachewarm::webhook {

// Name of the admission policy, its binding and the webhook configuration.
inline constexpr std::string_view kAdmissionName = "cachewarm.io";
// Name of the webhook's Secret and Service.
inline constexpr std::string_view kWebhookName = "cachewarm-webhook";

// The MutatingWebhookConfiguration. The administrator installs it; the operator fills in the
// caBundle.
struct Registration {
  std::vector<std::string> authorities;  // caBundle of each webhook, decoded
  // True if cert-manager maintains the caBundle and the Secret; the operator then writes neither.
  bool by_cert_manager = false;
};

struct Installed {
  bool policy_served = false;  // the API server serves MutatingAdmissionPolicies (v1)
  bool policy = false;         // the policy cachewarm.io and its binding exist
  std::optional<Registration> webhook;
};

absl::StatusOr<Installed> FindInstalled(kube::Client& client, std::stop_token stop);

// The Secret as it was read. A later write sends its resourceVersion, so that the API server
// rejects the write if the Secret has changed.
struct StoredCertificateBundle {
  CertificateBundle bundle;
  std::shared_ptr<const codec::Json> secret;
};
// Reads the Secret. Errors: FAILED_PRECONDITION, with the remedy, if the Secret does not exist.
absl::StatusOr<StoredCertificateBundle> ReadCertificateBundle(kube::Client& client,
                                                              const std::string& ns,
                                                              std::stop_token stop);
// Writes the Secret. Errors: ABORTED if it has changed since it was read.
absl::Status WriteCertificateBundle(kube::Client& client, const StoredCertificateBundle& stored,
                                    const CertificateBundle& bundle, std::stop_token stop);

// Sets the caBundle of every webhook in the configuration to `authorities`.
absl::Status UpdateCaBundle(kube::Client& client, const Registration& registration,
                            const std::string& authorities, std::stop_token stop);

}  // namespace cachewarm::webhook

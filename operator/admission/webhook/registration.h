// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/client/client.h"
#include "operator/admission/webhook/certificate_bundle.h"

// What the cluster has for admission, and the Secret of the certificates. Every call blocks.
namespace cachewarm::webhook {

// Of the admission policy, its binding and the webhook's configuration.
inline constexpr std::string_view kAdmissionName = "cachewarm.io";
// The Secret and the Service of the webhook.
inline constexpr std::string_view kWebhookName = "cachewarm-webhook";

// The MutatingWebhookConfiguration, which the administrator installs and the operator completes.
struct Registration {
  std::vector<std::string> authorities;  // caBundle of each of its webhooks, decoded
  // cert-manager fills in the caBundle and keeps the Secret: both are left alone.
  bool by_cert_manager = false;
};

struct Installed {
  bool policy_served = false;  // the server knows admission policies (v1)
  bool policy = false;         // ours and its binding are there
  std::optional<Registration> webhook;
};

absl::StatusOr<Installed> FindInstalled(kube::Client& client, std::stop_token stop);

// The Secret as it was read, to be written back in the same version.
struct StoredCertificateBundle {
  CertificateBundle bundle;
  std::shared_ptr<const codec::Json> secret;
};
// FAILED_PRECONDITION with the remedy when there is no such Secret.
absl::StatusOr<StoredCertificateBundle> ReadCertificateBundle(kube::Client& client,
                                                              const std::string& ns,
                                                              std::stop_token stop);
// ABORTED when somebody else wrote it meanwhile.
absl::Status WriteCertificateBundle(kube::Client& client, const StoredCertificateBundle& stored,
                                    const CertificateBundle& bundle, std::stop_token stop);

// Makes `authorities` the caBundle of every webhook of the configuration.
absl::Status UpdateCaBundle(kube::Client& client, const Registration& registration,
                            const std::string& authorities, std::stop_token stop);

}  // namespace cachewarm::webhook

// SPDX-License-Identifier: Apache-2.0
#include "operator/webhook/missing_admission.h"

namespace cachewarm::webhook {

std::string WhyMissing(const Installed& installed) {
  if (installed.policy || installed.webhook.has_value()) {
    return "";
  }
  return installed.policy_served ? "the admission policy cachewarm.io is not installed, so pods "
                                   "start without the cache; apply manifests/install.yaml"
                                 : "this API server has no admission policies (Kubernetes before "
                                   "1.36) and the webhook is not installed, so pods start without "
                                   "the cache; apply manifests/install-webhook.yaml";
}

}  // namespace cachewarm::webhook

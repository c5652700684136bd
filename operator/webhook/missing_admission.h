// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "operator/webhook/registration.h"

namespace cachewarm::webhook {

// Returns why no pod can be injected, with the manifest to apply; "" if the policy or the webhook
// is installed. The text becomes Snapshot::admission_missing and then the message of the reason
// NoAdmission.
std::string WhyMissing(const Installed& installed);

}  // namespace cachewarm::webhook

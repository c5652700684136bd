// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "absl/status/status.h"
#include "cli/cluster/held_pods.h"

namespace cachewarm::cli {

// Prepares an uninstall. First deletes two objects, so that new pods are no longer held: the
// MutatingAdmissionPolicyBinding, and the MutatingWebhookConfiguration that replaces the policy on
// older servers. The caller needs permission to delete both. Then releases all held pods of the
// cluster, and repeats this until no new held pod appears, because API servers observe the
// deletions with a delay. Does not change the operator, the agents, their objects or running pods.
// Errors: DEADLINE_EXCEEDED if pods are still held after two minutes.
absl::Status RemovePolicyAndRelease(const ReleaseDependencies& dependencies,
                                    const ReleaseRequest& request, std::stop_token stop);

}  // namespace cachewarm::cli

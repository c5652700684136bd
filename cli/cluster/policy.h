// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "absl/status/status.h"
#include "cli/cluster/held_pods.h"

namespace cachewarm::cli {

// Prepares an uninstall: deletes the binding of the admission policy, and the webhook that older
// servers need instead (the caller needs the right to delete them), so that new pods are no longer
// held, then releases all held pods of the cluster. Repeats until no new held pod appears, because
// API servers observe the deletion with a delay. Does not change the operator, the agents, their
// objects or running pods. Errors: DEADLINE_EXCEEDED if pods are still held after two minutes.
absl::Status RemovePolicyAndRelease(const ReleaseDependencies& dependencies,
                                    const ReleaseRequest& request, std::stop_token stop);

}  // namespace cachewarm::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "absl/status/status.h"
#include "cli/cluster/held_pods.h"

namespace cachewarm::cli {

// Before an uninstall: deletes what makes new pods wait (the binding of the admission policy, the
// webhook of older servers; needs the right to), then lets go of every pod of the cluster, again
// and again until none has come after: API servers see the deletion a moment later. The programs,
// their objects and running pods are not touched. DEADLINE_EXCEEDED when pods are still held after
// two minutes.
absl::Status RemovePolicyAndRelease(const ReleaseDependencies& dependencies,
                                    const ReleaseRequest& request, std::stop_token stop);

}  // namespace cachewarm::cli

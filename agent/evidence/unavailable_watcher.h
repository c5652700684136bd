// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "agent/evidence/tree_watcher.h"

namespace cachewarm::agent {

// Returns a Watcher that watches nothing, for nodes where the kernel has no inotify instance left.
// Every record is empty and incomplete, so starts are reported as unknown and captures include
// every allow-listed file. Workloads are not affected.
std::unique_ptr<Watcher> MakeUnavailableWatcher();

}  // namespace cachewarm::agent

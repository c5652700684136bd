// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "agent/evidence/watcher.h"

namespace cachewarm::agent {

// Stands in where the kernel gives no inotify instance: sees nothing and says so, so that starts
// are unknown and captures take every allow-listed file. Workloads do not notice.
std::unique_ptr<Watcher> MakeUnavailableWatcher();

}  // namespace cachewarm::agent

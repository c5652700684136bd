// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "agent/tree/root_layout.h"
#include "lib/base/digest.h"
#include "lib/bundle/store/store.h"

namespace cachewarm::agent {

// The mount in the spec of the agent.
Mount TestMount();

constexpr char kTestCpuClass[] = "x86-64-v4/amd-25-17/5c0d9f21";

// Runs the agent with `digests` in its spec: the startup of the daemon, then scrub, plan and steps
// until no step is left. Returns false if a step fails.
bool RunAgentOnce(const std::string& root_path, bundle::Store& store,
                  const std::vector<Digest>& digests);

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "agent/tree/layout.h"
#include "lib/base/digest.h"
#include "lib/bundle/store/store.h"

namespace cachewarm::agent {

// The mount that the agent is told of.
Mount TestMount();

constexpr char kTestCpuClass[] = "x86-64-v4/amd-25-17/5c0d9f21";

// One life of an agent that wants `digests` at its mount: what the daemon does at start, then
// scrub, plan and steps until nothing is left to do. False when a step fails.
bool RunAgentOnce(const std::string& root_path, bundle::Store& store,
                  const std::vector<Digest>& digests);

}  // namespace cachewarm::agent

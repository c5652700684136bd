// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/fingerprint/node_facts.h"

namespace cachewarm::cli {

// Facts of this machine: what the file of --node-facts declares (empty: nothing), the rest from
// the driver and from `proc_root`/cpuinfo.
absl::StatusOr<fingerprint::NodeFacts> FindMachineFacts(const std::string& facts_file,
                                                        const std::string& proc_root = "/proc");

}  // namespace cachewarm::cli

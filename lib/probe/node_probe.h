// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/fingerprint/node_facts.h"
#include "lib/gpu/probe.h"

namespace cachewarm::probe {

struct NodeProbeOptions {
  std::string proc_root = "/proc";  // holds cpuinfo
  std::string facts_file;           // --node-facts; empty: everything is probed
};

// Facts of this node: what the file declares, the rest from the driver and /proc/cpuinfo. The
// driver is not asked when the file declares the GPU type, /proc is not read when it declares the
// CPU class. INVALID_ARGUMENT for a bad file, naming it; UNAVAILABLE when the driver does not
// answer: ask again.
absl::StatusOr<fingerprint::NodeFacts> ProbeNode(const NodeProbeOptions& options,
                                                 gpu::Probe& gpu_probe);

}  // namespace cachewarm::probe

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/fingerprint/node_facts.h"
#include "lib/gpu/probe.h"

namespace cachewarm::probe {

struct NodeProbeOptions {
  std::string proc_root = "/proc";  // directory with the file cpuinfo
  std::string facts_file;           // path given by --node-facts; empty: everything is probed
  // True for a program that describes its node and not only itself: it is then an error if the
  // kernel lists GPUs that the probe does not find. False: such a machine counts as one without a
  // GPU.
  bool describes_node = false;
};

// Returns the facts of this node: those declared in the facts file, and the others from the driver
// and /proc/cpuinfo. The driver is not queried if the file declares the GPU type, and /proc is not
// read if it declares the CPU class. INVALID_ARGUMENT names a bad file; UNAVAILABLE if the driver
// does not answer: retry.
absl::StatusOr<fingerprint::NodeFacts> ProbeNode(const NodeProbeOptions& options,
                                                 gpu::Probe& gpu_probe);

// Returns the same facts without a query of the driver: the GPU type is empty unless the file
// declares it.
absl::StatusOr<fingerprint::NodeFacts> ProbeNodeWithoutGpu(const NodeProbeOptions& options);

}  // namespace cachewarm::probe

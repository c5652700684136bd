// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/codec/json_fwd.h"
#include "lib/fingerprint/cpu_class.h"
#include "lib/fingerprint/gpu_type.h"

namespace cachewarm::fingerprint {

// Properties of a node that compiled code depends on.
struct NodeFacts {
  std::string gpu_type{kCpuOnly};
  // The GPU type of each kind of device, each once, sorted. With several kinds, `gpu_type` names
  // all of them, so it does not show which kind a pod gets: see HasMixedKinds().
  std::vector<std::string> gpu_kinds;
  uint64_t gpu_memory_bytes = 0;  // memory of one device; 0: unknown, or the devices differ
  std::string cpu_class;
  std::string driver_version;  // empty without a GPU
  int device_count = 0;        // devices (with MIG: instances) of the whole node, not of a pod
  CpuFacts cpu;                // empty if --node-facts declares only cpuClass
  std::string gpu_source;      // origin of the GPU facts: "nvml", "cuda", "kfd", "none" or "file"
  std::string cpu_source;      // origin of the CPU facts: "proc" or "file"

  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

// The content of the file given by --node-facts. Facts that it omits are probed.
struct DeclaredFacts {
  std::optional<std::string> gpu_type;
  std::optional<std::string> cpu_class;
  std::optional<CpuFacts> cpu;
  std::string driver_version;
  int device_count = 0;
};

// Parses JSON or YAML of at most 64 KiB:
//   gpuType: nvidia/h100-80gb-hbm3/sm_90     or   gpu: {name: NVIDIA H100 80GB HBM3,
//                                                       computeCapability: "9.0", migProfile: ""}
//   driverVersion: 570.86.15
//   deviceCount: 8
//   cpuClass: x86-64-v3/intel-6-85/0123abcd  or   cpu: {architecture: x86_64, vendor: intel,
//                                                       family: "6", model: "85", flags: [avx2]}
// INVALID_ARGUMENT names a field that is unknown, malformed or in conflict with another field.
absl::StatusOr<DeclaredFacts> ParseDeclaredFacts(std::string_view text);

// Returns `probed`, with the declared facts in place of the probed ones.
NodeFacts Combine(const DeclaredFacts& declared, const NodeFacts& probed);

// True if the GPUs of the node differ in model, architecture or MIG profile. A pod may get any of
// them, so it is unknown which bundle fits a pod on this node, unless the facts file declares
// gpuType.
bool HasMixedKinds(const NodeFacts& facts);

// Encodes {"gpuType","cpuClass","driverVersion","deviceCount","cpu":{...},"gpuSource","cpuSource"}
// for bundles, status and logs; also "gpuKinds" if there are several, and "gpuMemoryBytes" if it is
// known. ParseDeclaredFacts cannot parse it.
codec::Json NodeFactsToJson(const NodeFacts& facts);

// Parses the text of NodeFactsToJson(), of at most 256 KiB. INVALID_ARGUMENT names a malformed
// member.
absl::StatusOr<NodeFacts> ParseNodeFacts(std::string_view text);

}  // namespace cachewarm::fingerprint

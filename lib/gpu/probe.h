// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cachewarm::gpu {

// One device that a process can use: a whole GPU, or a MIG instance of one.
struct Device {
  std::string name;  // product name without the MIG part
  int sm_major = 0;
  int sm_minor = 0;
  uint64_t memory_bytes = 0;
  std::string mig_profile;  // "1g.10gb"; empty for a whole GPU
};

struct Devices {
  std::vector<Device> devices;
  std::string driver_version;  // "570.86.15"; empty when unknown
  std::string source;          // "nvml", "cuda" or "none"
};

// Queries the driver of this machine. Not thread-safe; may block for seconds while the driver
// starts.
class Probe {
 public:
  Probe() = default;
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  virtual ~Probe() = default;

  // Returns the devices of this machine; an empty list if the machine has no driver or no device.
  // UNAVAILABLE if a driver exists but does not answer (being installed, GPU lost): retry.
  virtual absl::StatusOr<Devices> Run() = 0;
};

// Returns a probe that queries NVML, which sees every device of the node, or without NVML the CUDA
// driver library. Loads both libraries by dlopen, so that the program also starts on machines
// without them.
std::unique_ptr<Probe> MakeCudaProbe();

// Returns a probe that finds no device.
std::unique_ptr<Probe> MakeEmptyProbe();

}  // namespace cachewarm::gpu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cachewarm::gpu {

// One device that a process can be given: a whole GPU, or a MIG instance of one.
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

// Asks the driver of this machine. Not thread-safe; blocking for up to seconds (driver start).
class Probe {
 public:
  Probe() = default;
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  virtual ~Probe() = default;

  // No driver, or a driver without devices, is no error: it gives no devices. UNAVAILABLE when a
  // driver is there and does not answer (being installed, GPU lost): ask again.
  virtual absl::StatusOr<Devices> Run() = 0;
};

// NVML first, because it sees every device of the node; else the CUDA driver library. Both by
// dlopen: a program with it starts on any machine.
std::unique_ptr<Probe> MakeCudaProbe();

// Sees no device.
std::unique_ptr<Probe> MakeEmptyProbe();

}  // namespace cachewarm::gpu

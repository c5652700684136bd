// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cachewarm::gpu {

enum class Vendor { kNvidia, kAmd };

// One device that a process can use: a whole GPU, or a MIG instance or partition of one.
struct Device {
  Vendor vendor = Vendor::kNvidia;
  std::string name;          // product name without the MIG part
  std::string architecture;  // "gfx942"; empty for NVIDIA, whose architecture is sm_major.sm_minor
  int sm_major = 0;
  int sm_minor = 0;
  uint64_t memory_bytes = 0;
  std::string mig_profile;  // "1g.10gb"; empty for a whole GPU
};

struct Devices {
  std::vector<Device> devices;
  std::string driver_version;  // "570.86.15"; empty when unknown
  std::string source;          // "nvml", "cuda", "kfd" or "none"
  int hidden = 0;              // GPUs that exist but whose properties this process may not read
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

// Returns a probe that queries NVML, which sees every device of the node. If NVML is missing, the
// probe queries the CUDA driver library. Loads both libraries by dlopen, so that the program also
// starts on machines without them: first by their name, then from each of `driver_roots`,
// directories into which a driver is installed ("/run/nvidia/driver" of gpu-operator,
// "/home/kubernetes/bin/nvidia" of GKE). The libraries alone are not enough: the process must also
// be allowed to open /dev/nvidia*.
std::unique_ptr<Probe> MakeCudaProbe(const std::vector<std::string>& driver_roots = {});

// Returns the files that MakeCudaProbe() tries for a library of the driver, in this order.
std::vector<std::string> DriverLibraryPaths(const std::string& name,
                                            const std::vector<std::string>& driver_roots);
inline constexpr std::string_view kNvmlLibrary = "libnvidia-ml.so.1";

// Returns a probe that reads the AMD GPUs from the files of the kernel's amdgpu driver below
// `root`/sys/class/kfd; it needs no library. GPUs whose render device the container's device cgroup
// excludes are only counted (Devices::hidden).
std::unique_ptr<Probe> MakeKfdProbe(const std::string& root);

// Returns a probe that runs `probes` one after the other and reports the devices of all, with the
// source and driver version of the first one that found any. The first error ends it.
std::unique_ptr<Probe> JoinProbes(std::vector<std::unique_ptr<Probe>> probes);

// Returns a probe of all drivers: MakeCudaProbe() and MakeKfdProbe().
std::unique_ptr<Probe> MakeProbe(const std::vector<std::string>& driver_roots = {});

// Returns a probe that finds no device.
std::unique_ptr<Probe> MakeEmptyProbe();

}  // namespace cachewarm::gpu

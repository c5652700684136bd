// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cachewarm::fingerprint {

// One accelerator, with the names that its driver reports.
struct GpuDevice {
  std::string name;  // NVML product name, "NVIDIA H100 80GB HBM3"
  int sm_major = 0;  // compute capability: 9 and 0 mean 9.0
  int sm_minor = 0;
  std::string mig_profile;        // "1g.10gb", empty without MIG
  std::string vendor = "nvidia";  // or "amd"
  std::string architecture;       // "gfx942"; empty: "sm_" and sm_major, sm_minor

  friend bool operator==(const GpuDevice&, const GpuDevice&) = default;
};

// Maximum number of devices of a node.
inline constexpr int kDevicesMax = 1024;

// The GPU type of a node without a GPU.
inline constexpr std::string_view kCpuOnly = "cpu";

// Returns "nvidia/h100-80gb-hbm3/sm_90" or "nvidia/h100-80gb-hbm3/sm_90/mig-1g.10gb". The name is
// the product name in lower case, at most 63 bytes, without the vendor and without a suffix
// "-SHARED" or "-MIG-<profile>"; runs of characters outside [a-z0-9.+-] become "-". If
// `mig_profile` is empty, the profile comes from the suffix. An AMD GPU has the type
// "amd/device-74a1-304cu-192gb/gfx942".
std::string GpuTypeOf(const GpuDevice& device);

// Returns the GPU type of a node; kCpuOnly if it has no device. If the devices differ, the type
// names every kind of device once ("nvidia/a100-pcie-40gb+h100-pcie/sm_80+sm_90"), so only nodes
// with an equal mix share a bundle.
std::string GpuTypeOf(const std::vector<GpuDevice>& devices);

// True for "cpu" and for texts of the form that GpuTypeOf returns, at most 253 bytes.
bool IsGpuType(std::string_view text);

}  // namespace cachewarm::fingerprint

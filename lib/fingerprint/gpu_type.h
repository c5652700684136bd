// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cachewarm::fingerprint {

// One accelerator as its driver names it.
struct GpuDevice {
  std::string name;  // NVML product name, "NVIDIA H100 80GB HBM3"
  int sm_major = 0;  // compute capability 9.0
  int sm_minor = 0;
  std::string mig_profile;  // "1g.10gb", empty without MIG

  friend bool operator==(const GpuDevice&, const GpuDevice&) = default;
};

inline constexpr int kDevicesMax = 1024;  // of one node

// The GPU type of a node without a GPU.
inline constexpr std::string_view kCpuOnly = "cpu";

// "nvidia/h100-80gb-hbm3/sm_90" or "nvidia/h100-80gb-hbm3/sm_90/mig-1g.10gb". Name: lower case,
// without vendor, without a "-SHARED" or "-MIG-<profile>" tail (the tail gives the profile when
// `mig_profile` is empty), everything outside [a-z0-9.+-] becomes "-", at most 63 bytes.
std::string GpuTypeOf(const GpuDevice& device);

// The type of a node: kCpuOnly for no device. Devices that differ give one type that names every
// kind once ("nvidia/a100-pcie-40gb+h100-pcie/sm_80+sm_90"): only an equal mix shares a bundle.
std::string GpuTypeOf(const std::vector<GpuDevice>& devices);

// True for "cpu" and for any text of the form that GpuTypeOf returns; at most 253 bytes.
bool IsGpuType(std::string_view text);

}  // namespace cachewarm::fingerprint

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/gpu/probe.h"

// For use inside lib/gpu only. Each function opens its library, queries it and closes it.
namespace cachewarm::gpu {

// Both return the devices; QueryNvml() also returns the driver version. Nullopt if this machine
// lacks `library` or a driver; UNAVAILABLE if the driver does not answer.
absl::StatusOr<std::optional<Devices>> QueryNvml(const std::string& library);
absl::StatusOr<std::optional<Devices>> QueryCudaDriver(const std::string& library);

// Returns a probe that queries the libraries with these file names. The driver installs them under
// fixed names; tests pass other names.
std::unique_ptr<Probe> MakeCudaProbe(const std::string& nvml, const std::string& cuda);

// Splits "NVIDIA H100 80GB HBM3 MIG 1g.10gb" into "NVIDIA H100 80GB HBM3" and "1g.10gb".
void SplitMigName(std::string_view full, Device& device);

// A driver that reports more devices than this is considered faulty.
inline constexpr unsigned kDevicesMax = 1024;

}  // namespace cachewarm::gpu

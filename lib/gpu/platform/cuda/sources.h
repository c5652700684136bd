// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/gpu/probe.h"

// Inside lib/gpu only. Each source opens its library, asks and closes it again.
namespace cachewarm::gpu {

// nullopt when `library` is not on this machine. UNAVAILABLE when it does not answer.
absl::StatusOr<std::optional<Devices>> AskNvml(const std::string& library);
absl::StatusOr<std::optional<Devices>> AskCudaDriver(const std::string& library);

// Names of the libraries as the driver installs them; other names are for tests.
std::unique_ptr<Probe> MakeCudaProbe(const std::string& nvml, const std::string& cuda);

// "NVIDIA H100 80GB HBM3 MIG 1g.10gb" into "NVIDIA H100 80GB HBM3" and "1g.10gb".
void SplitMigName(std::string_view full, Device& device);

// No machine has more; a driver that says so is broken.
inline constexpr unsigned kDevicesMax = 1024;

}  // namespace cachewarm::gpu

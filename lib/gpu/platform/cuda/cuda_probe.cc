// SPDX-License-Identifier: Apache-2.0
#include "lib/base/status.h"
#include "lib/gpu/platform/cuda/sources.h"

namespace cachewarm::gpu {
namespace {

class CudaProbe final : public Probe {
 public:
  CudaProbe(std::string nvml, std::string cuda) : nvml_(std::move(nvml)), cuda_(std::move(cuda)) {}

  absl::StatusOr<Devices> Run() override {
    CW_ASSIGN_OR_RETURN(std::optional<Devices> devices, QueryNvml(nvml_));
    if (!devices.has_value()) {
      // Without NVML ask the CUDA driver: some runtimes mount only libcuda (driver capability
      // "compute" without "utility").
      CW_ASSIGN_OR_RETURN(devices, QueryCudaDriver(cuda_));
    }
    return devices.has_value() ? *std::move(devices)
                               : Devices{.devices = {}, .driver_version = {}, .source = "none"};
  }

 private:
  std::string nvml_;
  std::string cuda_;
};

}  // namespace

void SplitMigName(std::string_view full, Device& device) {
  constexpr std::string_view kMig = " MIG ";
  const size_t at = full.rfind(kMig);
  device.name = std::string(full.substr(0, at));
  if (at != std::string_view::npos) {
    device.mig_profile = std::string(full.substr(at + kMig.size()));
  }
}

std::unique_ptr<Probe> MakeCudaProbe(const std::string& nvml, const std::string& cuda) {
  return std::make_unique<CudaProbe>(nvml, cuda);
}

std::unique_ptr<Probe> MakeCudaProbe() {
  return MakeCudaProbe("libnvidia-ml.so.1", "libcuda.so.1");
}

}  // namespace cachewarm::gpu

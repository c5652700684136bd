// SPDX-License-Identifier: Apache-2.0
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/gpu/platform/cuda/sources.h"

namespace cachewarm::gpu {
namespace {

// Directories of a driver root that hold the driver's libraries: those of Debian and Ubuntu, of Red
// Hat, of GKE's installer, and the root itself (Bottlerocket has a directory with only libraries).
constexpr std::string_view kLibraryDirectories[] = {
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/lib64", "/lib", ""};

using Query = absl::StatusOr<std::optional<Devices>> (*)(const std::string& library);

class CudaProbe final : public Probe {
 public:
  CudaProbe(std::vector<std::string> nvml, std::vector<std::string> cuda)
      : nvml_(std::move(nvml)), cuda_(std::move(cuda)) {}

  absl::StatusOr<Devices> Run() override {
    CW_ASSIGN_OR_RETURN(std::optional<Devices> devices, First(QueryNvml, nvml_));
    if (!devices.has_value()) {
      // Without NVML ask the CUDA driver: some runtimes mount only libcuda (driver capability
      // "compute" without "utility").
      CW_ASSIGN_OR_RETURN(devices, First(QueryCudaDriver, cuda_));
    }
    return devices.has_value() ? *std::move(devices)
                               : Devices{.devices = {}, .driver_version = {}, .source = "none"};
  }

 private:
  static absl::StatusOr<std::optional<Devices>> First(Query query,
                                                      const std::vector<std::string>& libraries) {
    for (const std::string& library : libraries) {
      CW_ASSIGN_OR_RETURN(std::optional<Devices> devices, query(library));
      if (devices.has_value()) {
        return devices;
      }
    }
    return std::nullopt;
  }

  std::vector<std::string> nvml_;
  std::vector<std::string> cuda_;
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
  return std::make_unique<CudaProbe>(std::vector<std::string>{nvml},
                                     std::vector<std::string>{cuda});
}

std::vector<std::string> DriverLibraryPaths(const std::string& name,
                                            const std::vector<std::string>& driver_roots) {
  std::vector<std::string> paths = {name};
  for (const std::string& root : driver_roots) {
    for (const std::string_view directory : kLibraryDirectories) {
      paths.push_back(fmt::format("{}{}/{}", root, directory, name));
    }
  }
  return paths;
}

std::unique_ptr<Probe> MakeCudaProbe(const std::vector<std::string>& driver_roots) {
  return std::make_unique<CudaProbe>(DriverLibraryPaths(std::string(kNvmlLibrary), driver_roots),
                                     DriverLibraryPaths("libcuda.so.1", driver_roots));
}

}  // namespace cachewarm::gpu

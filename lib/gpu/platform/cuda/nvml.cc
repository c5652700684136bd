// SPDX-License-Identifier: Apache-2.0
#include <nvml.h>

#include <array>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/gpu/platform/cuda/sources.h"
#include "lib/gpu/shared_library.h"

namespace cachewarm::gpu {
namespace {

// Pointers to the functions of NVML. nvml.h maps some names to versioned symbols by macros. The
// macros do not affect the names given to dlsym, so Load() uses the versioned names.
struct Nvml {
  decltype(nvmlInit_v2)* init = nullptr;
  decltype(nvmlShutdown)* shutdown = nullptr;
  decltype(nvmlErrorString)* error_string = nullptr;
  decltype(nvmlSystemGetDriverVersion)* driver_version = nullptr;
  decltype(nvmlDeviceGetCount_v2)* count = nullptr;
  decltype(nvmlDeviceGetHandleByIndex_v2)* handle = nullptr;
  decltype(nvmlDeviceGetName)* name = nullptr;
  decltype(nvmlDeviceGetCudaComputeCapability)* capability = nullptr;
  decltype(nvmlDeviceGetMemoryInfo)* memory = nullptr;
  // Functions for MIG: null with drivers before 450, which do not support MIG.
  decltype(nvmlDeviceGetMigMode)* mig_mode = nullptr;
  decltype(nvmlDeviceGetMaxMigDeviceCount)* mig_count = nullptr;
  decltype(nvmlDeviceGetMigDeviceHandleByIndex)* mig_handle = nullptr;

  bool Load(const SharedLibrary& library) {
    library.Find("nvmlDeviceGetMigMode", mig_mode);
    library.Find("nvmlDeviceGetMaxMigDeviceCount", mig_count);
    library.Find("nvmlDeviceGetMigDeviceHandleByIndex", mig_handle);
    return library.Find("nvmlInit_v2", init) && library.Find("nvmlShutdown", shutdown) &&
           library.Find("nvmlErrorString", error_string) &&
           library.Find("nvmlSystemGetDriverVersion", driver_version) &&
           library.Find("nvmlDeviceGetCount_v2", count) &&
           library.Find("nvmlDeviceGetHandleByIndex_v2", handle) &&
           library.Find("nvmlDeviceGetName", name) &&
           library.Find("nvmlDeviceGetCudaComputeCapability", capability) &&
           library.Find("nvmlDeviceGetMemoryInfo", memory);
  }

  absl::Status Error(std::string_view call, nvmlReturn_t code) const {
    return absl::UnavailableError(fmt::format("NVML failed ({}): {}", call, error_string(code)));
  }
};

// Shuts NVML down at the end of the scope.
class Session {
 public:
  explicit Session(const Nvml& nvml) : nvml_(nvml) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { nvml_.shutdown(); }

 private:
  const Nvml& nvml_;
};

absl::Status Describe(const Nvml& nvml, nvmlDevice_t handle, Device& device) {
  std::array<char, NVML_DEVICE_NAME_V2_BUFFER_SIZE> name{};
  if (const nvmlReturn_t code = nvml.name(handle, name.data(), name.size()); code != NVML_SUCCESS) {
    return nvml.Error("device name", code);
  }
  name.back() = '\0';
  SplitMigName(name.data(), device);
  nvmlMemory_t memory{};
  if (nvml.memory(handle, &memory) == NVML_SUCCESS) {
    device.memory_bytes = memory.total;
  }
  return absl::OkStatus();
}

// Adds the MIG instances of a GPU in MIG mode; adds nothing for other GPUs.
absl::Status AddMigInstances(const Nvml& nvml, nvmlDevice_t parent, const Device& whole,
                             Devices& out) {
  unsigned slots = 0;
  if (nvml.mig_count(parent, &slots) != NVML_SUCCESS || slots > kDevicesMax) {
    return absl::OkStatus();
  }
  for (unsigned i = 0; i < slots; ++i) {
    nvmlDevice_t instance = nullptr;
    if (nvml.mig_handle(parent, i, &instance) != NVML_SUCCESS) {
      continue;  // no instance has this index
    }
    Device device = whole;
    CW_RETURN_IF_ERROR(Describe(nvml, instance, device));
    out.devices.push_back(std::move(device));
  }
  return absl::OkStatus();
}

bool InMigMode(const Nvml& nvml, nvmlDevice_t handle) {
  unsigned current = NVML_DEVICE_MIG_DISABLE;
  unsigned pending = NVML_DEVICE_MIG_DISABLE;
  return nvml.mig_mode != nullptr && nvml.mig_count != nullptr && nvml.mig_handle != nullptr &&
         nvml.mig_mode(handle, &current, &pending) == NVML_SUCCESS &&
         current == NVML_DEVICE_MIG_ENABLE;
}

absl::Status AddDevice(const Nvml& nvml, unsigned index, Devices& out) {
  nvmlDevice_t handle = nullptr;
  if (const nvmlReturn_t code = nvml.handle(index, &handle); code != NVML_SUCCESS) {
    return nvml.Error("device handle", code);
  }
  Device device;
  if (const nvmlReturn_t code = nvml.capability(handle, &device.sm_major, &device.sm_minor);
      code != NVML_SUCCESS) {
    return nvml.Error("compute capability", code);
  }
  CW_RETURN_IF_ERROR(Describe(nvml, handle, device));
  if (InMigMode(nvml, handle)) {
    return AddMigInstances(nvml, handle, device, out);
  }
  out.devices.push_back(std::move(device));
  return absl::OkStatus();
}

absl::StatusOr<Devices> Ask(const Nvml& nvml) {
  Devices out{.devices = {}, .driver_version = {}, .source = "nvml"};
  std::array<char, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE> version{};
  if (nvml.driver_version(version.data(), version.size()) == NVML_SUCCESS) {
    version.back() = '\0';
    out.driver_version = version.data();
  }
  unsigned count = 0;
  if (const nvmlReturn_t code = nvml.count(&count); code != NVML_SUCCESS) {
    return nvml.Error("device count", code);
  }
  if (count > kDevicesMax) {
    return absl::UnavailableError(
        fmt::format("NVML reports an implausible number of devices: {}", count));
  }
  for (unsigned i = 0; i < count; ++i) {
    CW_RETURN_IF_ERROR(AddDevice(nvml, i, out));
  }
  return out;
}

}  // namespace

absl::StatusOr<std::optional<Devices>> QueryNvml(const std::string& library_name) {
  const SharedLibrary library(library_name);
  Nvml nvml;
  if (!library.open()) {
    return std::nullopt;
  }
  if (!nvml.Load(library)) {
    return absl::UnavailableError(
        fmt::format("{} lacks functions of NVML; install a newer driver", library_name));
  }
  if (const nvmlReturn_t code = nvml.init(); code != NVML_SUCCESS) {
    // Treat these errors as a machine without a GPU: a container image may contain the library
    // although the machine has no driver.
    if (code == NVML_ERROR_DRIVER_NOT_LOADED || code == NVML_ERROR_LIBRARY_NOT_FOUND) {
      return std::nullopt;
    }
    return nvml.Error("start", code);
  }
  const Session session(nvml);
  CW_ASSIGN_OR_RETURN(Devices devices, Ask(nvml));
  return devices;
}

}  // namespace cachewarm::gpu

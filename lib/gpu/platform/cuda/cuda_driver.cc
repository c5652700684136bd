// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>

#include <array>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/gpu/platform/cuda/sources.h"
#include "lib/gpu/shared_library.h"

namespace cachewarm::gpu {
namespace {

// Pointers to the functions of libcuda. cuda.h maps some names to versioned symbols by macros. The
// macros do not affect the names given to dlsym, so Load() uses the versioned names.
struct CudaDriver {
  decltype(cuInit)* init = nullptr;
  decltype(cuGetErrorString)* error_string = nullptr;
  decltype(cuDeviceGetCount)* count = nullptr;
  decltype(cuDeviceGet)* get = nullptr;
  decltype(cuDeviceGetName)* name = nullptr;
  decltype(cuDeviceGetAttribute)* attribute = nullptr;
  decltype(cuDeviceTotalMem)* memory = nullptr;

  bool Load(const SharedLibrary& library) {
    return library.Find("cuInit", init) && library.Find("cuGetErrorString", error_string) &&
           library.Find("cuDeviceGetCount", count) && library.Find("cuDeviceGet", get) &&
           library.Find("cuDeviceGetName", name) &&
           library.Find("cuDeviceGetAttribute", attribute) &&
           library.Find("cuDeviceTotalMem_v2", memory);
  }

  absl::Status Error(std::string_view call, CUresult code) const {
    const char* text = nullptr;
    if (error_string(code, &text) != CUDA_SUCCESS || text == nullptr) {
      text = "unknown error";
    }
    return absl::UnavailableError(fmt::format("the CUDA driver failed ({}): {}", call, text));
  }
};

absl::StatusOr<Device> Describe(const CudaDriver& cuda, int index) {
  CUdevice handle = 0;
  if (const CUresult code = cuda.get(&handle, index); code != CUDA_SUCCESS) {
    return cuda.Error("device", code);
  }
  std::array<char, 256> name{};
  if (const CUresult code = cuda.name(name.data(), static_cast<int>(name.size()), handle);
      code != CUDA_SUCCESS) {
    return cuda.Error("device name", code);
  }
  name.back() = '\0';
  Device device;
  SplitMigName(name.data(), device);
  for (const auto& [attribute, out] :
       {std::pair(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &device.sm_major),
        std::pair(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &device.sm_minor)}) {
    if (const CUresult code = cuda.attribute(out, attribute, handle); code != CUDA_SUCCESS) {
      return cuda.Error("compute capability", code);
    }
  }
  if (size_t bytes = 0; cuda.memory(&bytes, handle) == CUDA_SUCCESS) {
    device.memory_bytes = bytes;
  }
  return device;
}

}  // namespace

absl::StatusOr<std::optional<Devices>> QueryCudaDriver(const std::string& library_name) {
  const SharedLibrary library(library_name);
  if (!library.open()) {
    return std::nullopt;
  }
  CudaDriver cuda;
  if (!cuda.Load(library)) {
    return absl::UnavailableError(
        fmt::format("{} lacks functions of the CUDA driver; install a newer driver", library_name));
  }
  Devices out{.devices = {}, .driver_version = {}, .source = "cuda"};
  if (const CUresult code = cuda.init(0); code != CUDA_SUCCESS) {
    // Treat these errors as a machine without a GPU: the driver has no device, the library is only
    // a stub in a container image, or the library does not match the kernel's driver.
    const bool none = code == CUDA_ERROR_NO_DEVICE || code == CUDA_ERROR_STUB_LIBRARY ||
                      code == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    return none ? absl::StatusOr<std::optional<Devices>>(std::nullopt) : cuda.Error("start", code);
  }
  int count = 0;
  if (const CUresult code = cuda.count(&count); code != CUDA_SUCCESS) {
    return cuda.Error("device count", code);
  }
  if (count < 0 || count > static_cast<int>(kDevicesMax)) {
    return absl::UnavailableError(
        fmt::format("the CUDA driver reports an implausible number of devices: {}", count));
  }
  for (int i = 0; i < count; ++i) {
    CW_ASSIGN_OR_RETURN(Device device, Describe(cuda, i));
    out.devices.push_back(std::move(device));
  }
  return out;
}

}  // namespace cachewarm::gpu

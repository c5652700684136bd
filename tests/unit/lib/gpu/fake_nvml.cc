// SPDX-License-Identifier: Apache-2.0
// A fake libnvidia-ml; $FAKE_GPU_SCENARIO names its behavior.
#include <nvml.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string Scenario() {
  const char* scenario = std::getenv("FAKE_GPU_SCENARIO");
  return scenario == nullptr ? "h100x8" : scenario;
}

// Handles: 1 + index for a GPU, 100 + index for a MIG instance of GPU 0.
nvmlDevice_t Handle(uintptr_t number) {
  return reinterpret_cast<nvmlDevice_t>(number);
}
uintptr_t NumberOf(nvmlDevice_t handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

nvmlReturn_t Text(const std::string& text, char* out, unsigned size) {
  if (text.size() + 1 > size) {
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  std::memcpy(out, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlInit_v2() {
  if (Scenario() == "no-driver") {
    return NVML_ERROR_DRIVER_NOT_LOADED;
  }
  return Scenario() == "init-fails" ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown() {
  return NVML_SUCCESS;
}

const char* nvmlErrorString(nvmlReturn_t code) {
  return code == NVML_ERROR_GPU_IS_LOST ? "GPU is lost" : "fake error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned size) {
  return Text("570.86.15", version, size);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  const std::string scenario = Scenario();
  if (scenario == "count-fails") {
    return NVML_ERROR_UNKNOWN;
  }
  *count = scenario == "h100x8" ? 8 : scenario == "none" ? 0 : scenario == "absurd" ? 100'000 : 1;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  if (Scenario() == "gpu-lost") {
    return NVML_ERROR_GPU_IS_LOST;
  }
  *device = Handle(index + 1);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned size) {
  const std::string scenario = Scenario();
  if (scenario == "name-fails") {
    return NVML_ERROR_UNKNOWN;
  }
  if (NumberOf(device) >= 100) {
    return Text("NVIDIA H100 80GB HBM3 MIG 1g.10gb", name, size);
  }
  return Text("NVIDIA H100 80GB HBM3", name, size);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return Scenario() == "capability-fails" ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t* memory) {
  memory->total = 85'520'809'984;
  return Scenario() == "memory-fails" ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t, unsigned* current, unsigned* pending) {
  const std::string scenario = Scenario();
  *current = scenario.starts_with("mig") ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
  *pending = *current;
  return scenario == "h100x8" ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t, unsigned* count) {
  *count = 7;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t, unsigned index,
                                                 nvmlDevice_t* device) {
  if (Scenario() == "mig-empty" || index % 2 == 1) {
    return NVML_ERROR_NOT_FOUND;
  }
  *device = Handle(100 + index);
  return NVML_SUCCESS;
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// A fake libnvidia-ml. Its scenario is in $FAKE_GPU_SCENARIO, else in the file beside the library
// with the suffix ".scenario", so that a test can change it under a running program.
#include <dlfcn.h>
#include <nvml.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

// Names, capabilities and memory sizes as nvidia-smi prints them for these GPUs.
struct Model {
  const char* scenario;
  const char* name;
  int major;
  int minor;
  unsigned long long mebibytes;
  unsigned count;
  const char* driver;
};

constexpr Model kModels[] = {
    {"h100x8", "NVIDIA H100 80GB HBM3", 9, 0, 81'559, 8, "570.86.15"},
    {"h200x8", "NVIDIA H200", 9, 0, 143'771, 8, "570.133.20"},
    {"b200x8", "NVIDIA B200", 10, 0, 183'359, 8, "570.133.20"},
    {"l4", "NVIDIA L4", 8, 9, 23'034, 1, "550.54.15"},
    {"a100-mig", "NVIDIA A100-SXM4-40GB", 8, 0, 40'960, 1, "535.183.01"},
};
constexpr Model kDefault = {"", "NVIDIA H100 80GB HBM3", 9, 0, 81'559, 1, "570.86.15"};

std::string Scenario() {
  if (const char* scenario = std::getenv("FAKE_GPU_SCENARIO"); scenario != nullptr) {
    return scenario;
  }
  Dl_info own{};
  std::string scenario = "h100x8";
  if (::dladdr(reinterpret_cast<const void*>(&Scenario), &own) != 0) {
    std::ifstream(std::string(own.dli_fname) + ".scenario") >> scenario;
  }
  return scenario;
}

Model Current() {
  const std::string scenario = Scenario();
  for (const Model& model : kModels) {
    if (scenario == model.scenario) {
      return model;
    }
  }
  return kDefault;
}

// Scenarios with MIG: "mig" and "a100-mig" have equal instances, "mig-mixed" two profiles,
// "mig-empty" none.
bool HasMig() {
  return Scenario().find("mig") != std::string::npos;
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
  const std::string scenario = Scenario();
  if (scenario == "hang") {
    while (true) {
      ::pause();
    }
  }
  if (scenario == "crash") {
    std::abort();
  }
  if (scenario == "no-driver") {
    return NVML_ERROR_DRIVER_NOT_LOADED;
  }
  return scenario == "init-fails" ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown() {
  return NVML_SUCCESS;
}

const char* nvmlErrorString(nvmlReturn_t code) {
  return code == NVML_ERROR_GPU_IS_LOST ? "GPU is lost" : "fake error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned size) {
  return Text(Current().driver, version, size);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  const std::string scenario = Scenario();
  if (scenario == "count-fails") {
    return NVML_ERROR_UNKNOWN;
  }
  *count = scenario == "none" ? 0 : scenario == "absurd" ? 100'000 : Current().count;
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
  std::string full = Current().name;
  if (NumberOf(device) >= 100) {
    const bool wide = scenario == "mig-mixed" && NumberOf(device) == 100;
    full += scenario == "a100-mig" ? " MIG 1g.5gb" : wide ? " MIG 3g.40gb" : " MIG 1g.10gb";
  }
  return Text(full, name, size);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t, int* major, int* minor) {
  *major = Current().major;
  *minor = Current().minor;
  return Scenario() == "capability-fails" ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  const unsigned long long slice = NumberOf(device) >= 100 ? 8 : 1;
  memory->total = (Current().mebibytes << 20U) / slice;
  return Scenario() == "memory-fails" ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t, unsigned* current, unsigned* pending) {
  *current = HasMig() ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
  *pending = *current;
  return Scenario() == "h100x8" ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
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

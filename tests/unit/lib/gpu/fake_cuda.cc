// SPDX-License-Identifier: Apache-2.0
// A fake libcuda; $FAKE_GPU_SCENARIO names its behavior.
#include <cuda.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string Scenario() {
  const char* scenario = std::getenv("FAKE_GPU_SCENARIO");
  return scenario == nullptr ? "h200" : scenario;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) {
  const std::string scenario = Scenario();
  if (scenario == "no-device") {
    return CUDA_ERROR_NO_DEVICE;
  }
  if (scenario == "stub") {
    return CUDA_ERROR_STUB_LIBRARY;
  }
  return scenario == "init-fails" ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "fake error";
  return Scenario() == "silent" ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  const std::string scenario = Scenario();
  *count = scenario == "absurd" ? -3 : 2;
  return scenario == "count-fails" || scenario == "silent" ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return Scenario() == "get-fails" ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "NVIDIA H200", static_cast<size_t>(size));
  return Scenario() == "name-fails" ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
  return Scenario() == "attribute-fails" ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = 150'000'000'000;
  return CUDA_SUCCESS;
}

}  // extern "C"

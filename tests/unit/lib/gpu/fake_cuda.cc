// SPDX-License-Identifier: Apache-2.0
// A libcuda that plays the scene named by $PLAYED_SCENE.
#include <cuda.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string Scene() {
  const char* scene = std::getenv("PLAYED_SCENE");
  return scene == nullptr ? "h200" : scene;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) {
  const std::string scene = Scene();
  if (scene == "no-device") {
    return CUDA_ERROR_NO_DEVICE;
  }
  if (scene == "stub") {
    return CUDA_ERROR_STUB_LIBRARY;
  }
  return scene == "init-fails" ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "fake error";
  return Scene() == "silent" ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  const std::string scene = Scene();
  *count = scene == "absurd" ? -3 : 2;
  return scene == "count-fails" || scene == "silent" ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return Scene() == "get-fails" ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "NVIDIA H200", static_cast<size_t>(size));
  return Scene() == "name-fails" ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
  return Scene() == "attribute-fails" ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = 150'000'000'000;
  return CUDA_SUCCESS;
}

}  // extern "C"

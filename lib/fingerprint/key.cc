// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/key.h"

#include "fmt/format.h"
#include "lib/base/digest.h"
#include "lib/base/hex.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/fingerprint/cpu_class.h"
#include "lib/fingerprint/gpu_type.h"

namespace cachewarm::fingerprint {
namespace {

constexpr size_t kImageMax = 1024;
constexpr size_t kContainerMax = 63;  // a DNS label

absl::Status Check(const KeyFactors& factors) {
  if (!IsGpuType(factors.gpu_type)) {
    return absl::InvalidArgumentError("key: gpuType is missing or malformed");
  }
  if (!IsCpuClass(factors.cpu_class)) {
    return absl::InvalidArgumentError("key: cpuClass is missing or malformed");
  }
  if (factors.image.empty() || factors.image.size() > kImageMax) {
    return absl::InvalidArgumentError(
        fmt::format("key: image is missing or longer than {} bytes", kImageMax));
  }
  if (factors.devices < 0 || factors.devices > kDevicesMax) {
    return absl::InvalidArgumentError(
        fmt::format("key: devices must be from 0 to {}", kDevicesMax));
  }
  if (factors.container.empty() || factors.container.size() > kContainerMax) {
    return absl::InvalidArgumentError(
        fmt::format("key: container is missing or longer than {} bytes", kContainerMax));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> KeyOf(const KeyFactors& factors) {
  CW_RETURN_IF_ERROR(Check(factors));
  CW_ASSIGN_OR_RETURN(const std::string canonical,
                      codec::CanonicalJson({{"version", 1},
                                            {"gpuType", factors.gpu_type},
                                            {"cpuClass", factors.cpu_class},
                                            {"image", factors.image},
                                            {"devices", factors.devices},
                                            {"container", factors.container}}));
  return DigestOf(canonical).hex();
}

bool IsKey(std::string_view text) {
  return text.size() == 64 && IsLowerHex(text);
}

std::string Key8(std::string_view key) {
  return std::string(key.substr(0, 8));
}

}  // namespace cachewarm::fingerprint

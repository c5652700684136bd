// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cachewarm::fingerprint {

// What a bundle was compiled for. Arguments and environment of the container are left to the
// engine's own keys.
struct KeyFactors {
  std::string gpu_type;
  std::string cpu_class;
  std::string image;     // as the pod template writes it, tag or digest included
  int device_count = 0;  // accelerators that the container asks for
  std::string container;

  friend bool operator==(const KeyFactors&, const KeyFactors&) = default;
};

// 64 lower-case hex digits: SHA-256 over the canonical JSON
// {"container","cpuClass","deviceCount","gpuType","image","version":1}. INVALID_ARGUMENT names the
// factor that is missing or malformed.
absl::StatusOr<std::string> KeyOf(const KeyFactors& factors);

// True for 64 lower-case hex digits.
bool IsKey(std::string_view text);

// The first 8 hex digits: for names of objects, never for comparison.
std::string Key8(std::string_view key);

}  // namespace cachewarm::fingerprint

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/api/node_cache.h"

namespace cachewarm::fingerprint {

// What a bundle was compiled for: the image as the pod template names it, and the accelerators that
// the container asks for. Its arguments and environment are left to the engine's own keys.
using api::KeyFactors;

// 64 lower-case hex digits: SHA-256 over the canonical JSON
// {"container","cpuClass","devices","gpuType","image","version":1}. INVALID_ARGUMENT names the
// factor that is missing or malformed.
absl::StatusOr<std::string> KeyOf(const KeyFactors& factors);

// True for 64 lower-case hex digits.
bool IsKey(std::string_view text);

// The first 8 hex digits: for names of objects, never for comparison.
std::string Key8(std::string_view key);

}  // namespace cachewarm::fingerprint

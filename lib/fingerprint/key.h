// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/api/node_cache.h"

namespace cachewarm::fingerprint {

// The inputs of a key: GPU type, CPU class, image as the pod template names it, devices that the
// container requests, and its name. Arguments and environment are part of the engines' own keys.
using api::KeyFactors;

// Returns 64 lower-case hex digits, the SHA-256 over the canonical JSON
// {"container","cpuClass","devices","gpuType","image","version":1}. INVALID_ARGUMENT names the
// missing or malformed factor.
absl::StatusOr<std::string> KeyOf(const KeyFactors& factors);

// True for 64 lower-case hex digits.
bool IsKey(std::string_view text);

// Returns the first 8 hex digits, for names of objects. Not unique: never compare them.
std::string Key8(std::string_view key);

}  // namespace cachewarm::fingerprint

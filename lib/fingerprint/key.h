// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/api/node_cache.h"

namespace cachewarm::fingerprint {

// The inputs of a key: GPU type, CPU class, image as the pod names it after admission, number of
// devices that the container requests, and the container's name. Arguments and environment
// variables are not inputs, because the engines hash them into the keys of their own entries.
using api::KeyFactors;

// Returns the key: 64 lower-case hex digits, the SHA-256 over the canonical JSON
// {"container","cpuClass","devices","gpuType","image","version":1}. INVALID_ARGUMENT names the
// missing or malformed factor.
absl::StatusOr<std::string> KeyOf(const KeyFactors& factors);

// True for 64 lower-case hex digits.
bool IsKey(std::string_view text);

// Returns the first 8 hex digits of a key, for names of objects. They are not unique: never compare
// them.
std::string Key8(std::string_view key);

}  // namespace cachewarm::fingerprint

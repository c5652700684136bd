// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/fs/dir.h"

// Reads the factors of vLLM's cache key from cache_key_factors.json. vLLM writes this file once for
// each key, beside the cache entries. It contains environment variables in clear text, so it never
// leaves the node: only the names of the factors and salted hashes of their values do.
namespace cachewarm::capture {

// Hashes of values by the name of the factor: "env.VLLM_USE_V1", "code_hash". The name "salt"
// identifies the salt, "part" the rank and the part of the model, as "rank_0_0/backbone"; hashes
// under different salts or of different parts are not comparable.
using EngineFactors = std::map<std::string, std::string>;

inline constexpr std::string_view kEngineSaltFactor = "salt";
inline constexpr std::string_view kEnginePartFactor = "part";
inline constexpr std::string_view kEngineVariablePrefix = "env.";
inline constexpr size_t kEngineFactorsMax = 512;       // without salt and part
inline constexpr size_t kEngineFactorNameBytes = 128;  // of letters, digits, "_", "-" and "."
inline constexpr int64_t kEngineFactorsFileBytes = 256 << 10;
// Shortest salt that is accepted (operator/factors).
inline constexpr size_t kEngineSaltBytesMin = 32;
inline constexpr size_t kDifferingFactorsMax = 8;

// Parses the text of the cache_key_factors.json of a part ("rank_0_0/backbone") and hashes each
// value with HMAC-SHA-256. The members of nested objects become one factor each, with a dotted
// name; a list is one value. Pure. Errors: INVALID_ARGUMENT if the text is not such an object or
// exceeds a limit; FAILED_PRECONDITION if the salt is too short. Messages contain no part of a
// value.
absl::StatusOr<EngineFactors> HashEngineFactors(std::string_view text, std::string_view part,
                                                std::string_view salt);

// Reads the file that vLLM wrote to `tree` between `begin` and `end`. If there are several, because
// ranks and parts of the model have one each, takes the first rank and part in the order of their
// names, and of these the newest. NOT_FOUND if there is none. Other errors as
// HashEngineFactors(), and those of reading. Calls `on_opening`, unless it is empty, before the
// file is opened.
absl::StatusOr<EngineFactors> ReadEngineFactors(
    const fs::Dir& tree, WallTime begin, WallTime end, std::string_view salt,
    const std::function<void(const std::string& path)>& on_opening);

// Returns the names of the factors that differ, or that one side lacks: variables first, else in
// the order of the names; at most kDifferingFactorsMax. Returns none if the salts or the
// parts differ or a side lacks them. Pure.
std::vector<std::string> DifferingFactors(const EngineFactors& builder, const EngineFactors& start);

}  // namespace cachewarm::capture

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/caches/placement.h"

namespace cachewarm::caches {

// Files that name others of their directory by absolute paths (Placement::own_paths) are small:
// larger ones are not rewritten.
inline constexpr int64_t kOwnPathsBytesMax = int64_t{4} << 20;

// Returns the text of the file `path` (relative to a generation's root) as an engine would have
// written it in `directory`, the absolute path of the directory that holds the file: in each quoted
// absolute path of a file in the same directory of the cache, the part before the file's name is
// replaced. Returns nullopt if there is nothing to replace, or if `directory` cannot stand between
// quotes. Never parses or executes the text. Pure.
std::optional<std::string> Relocate(std::string_view text, const Placement& placement,
                                    std::string_view path, std::string_view directory);

}  // namespace cachewarm::caches

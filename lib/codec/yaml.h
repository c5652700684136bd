// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::codec {

struct YamlLimits {
  size_t bytes_max = 8U << 20U;
  int depth_max = 64;
  size_t nodes_max = 1'000'000;  // an alias counts as all nodes of its anchor ("billion laughs")
};

// Parses one YAML document into JSON by the core schema of YAML 1.2: plain true, false, null,
// integers and floats get their type; quoted values are strings; keys are strings. INVALID_ARGUMENT
// if the text is malformed, exceeds a limit, repeats a key in a map, or does not contain exactly
// one document. Empty documents do not count.
absl::StatusOr<Json> ParseYaml(std::string_view text, const YamlLimits& limits = {});

// Parses every document of a stream; skips empty documents.
absl::StatusOr<std::vector<Json>> ParseYamlStream(std::string_view text,
                                                  const YamlLimits& limits = {});

// Returns block-style YAML with sorted members. A text that another reader could take for a number,
// a boolean or null is in double quotes, by YAML 1.1 as well as 1.2. Replaces invalid UTF-8 in
// strings by U+FFFD.
std::string DumpYaml(const Json& value);

}  // namespace cachewarm::codec

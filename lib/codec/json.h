// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::codec {

// Limits of a text, checked before it is parsed.
struct JsonLimits {
  size_t bytes_max = 64U << 20U;
  int depth_max = 64;
  // Reads objects and lists deeper than depth_max as null, instead of rejecting the text. Used for
  // lists in which one object must not make the others unreadable.
  bool prune = false;
  // Limits the number of values: a value of two bytes takes up to 100 bytes of memory once parsed.
  // An empty {} or [] may count as two.
  size_t values_max = std::numeric_limits<size_t>::max();
};

// Parses one JSON value (RFC 8259). INVALID_ARGUMENT with the byte offset if it is malformed, too
// long, too deep or has too many values. The caller includes <nlohmann/json.hpp> through
// "lib/codec/json_value.h".
absl::StatusOr<Json> ParseJson(std::string_view text, const JsonLimits& limits = {});

// Returns compact text; replaces invalid UTF-8 in strings by U+FFFD.
std::string DumpJson(const Json& value);

// Returns the canonical text, over which keys and digests are computed: members sorted by their
// UTF-8 bytes, no blanks. INVALID_ARGUMENT for floating point numbers.
absl::StatusOr<std::string> CanonicalJson(const Json& value);

// Returns the members of an object that are strings, such as labels and annotations. Returns none
// for a null pointer or another type than an object.
std::map<std::string, std::string> Texts(const Json* object);

}  // namespace cachewarm::codec

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
  // lists of Kubernetes objects, so that one object that is too deep does not make the others
  // unreadable.
  bool prune = false;
  // Limits the number of values, because a value of two bytes takes up to 100 bytes of memory once
  // parsed. An empty {} or [] may count as two.
  size_t values_max = std::numeric_limits<size_t>::max();
};

// Parses one JSON value (RFC 8259). INVALID_ARGUMENT if the text is malformed (with the byte
// offset) or exceeds one of `limits`. Callers include "lib/codec/json_value.h" to use the result.
absl::StatusOr<Json> ParseJson(std::string_view text, const JsonLimits& limits = {});

// Returns compact text; replaces invalid UTF-8 in strings by U+FFFD.
std::string DumpJson(const Json& value);

// Returns the canonical text, from which bundle keys and digests are computed: members are sorted
// by their UTF-8 bytes, and there are no blanks. INVALID_ARGUMENT for floating point numbers and
// invalid UTF-8.
absl::StatusOr<std::string> CanonicalJson(const Json& value);

// Returns those members of `object` whose values are strings; use it for labels and annotations.
// Returns an empty map if `object` is null or not an object.
std::map<std::string, std::string> Texts(const Json* object);

}  // namespace cachewarm::codec

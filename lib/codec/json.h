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

// What a text may hold before we look at it.
struct JsonLimits {
  size_t bytes_max = 64U << 20U;
  int depth_max = 64;
  // Objects and lists below depth_max are read as null, instead of the whole text being refused:
  // for texts in which one object of many, of whomever, must not make the others unreadable.
  bool prune = false;
  // A value is as few as two bytes of text and takes up to 100 when it is parsed: for texts of
  // which nobody but their writer has bounded the number. An empty {} or [] may count as two.
  size_t values_max = std::numeric_limits<size_t>::max();
};

// Parses one JSON value (RFC 8259). INVALID_ARGUMENT with the byte offset when it is malformed,
// too long, too deep or of too many values. The caller includes <nlohmann/json.hpp> by
// "lib/codec/json_value.h".
absl::StatusOr<Json> ParseJson(std::string_view text, const JsonLimits& limits = {});

// Compact text; invalid UTF-8 in strings is replaced by U+FFFD.
std::string DumpJson(const Json& value);

// The same value always gives the same bytes: members sorted by their UTF-8 bytes, no blanks, no
// floating point (INVALID_ARGUMENT). What keys and digests are computed over.
absl::StatusOr<std::string> CanonicalJson(const Json& value);

// The members that are strings, as of labels and annotations; none for a null pointer and for what
// is no object.
std::map<std::string, std::string> Texts(const Json* object);

}  // namespace cachewarm::codec

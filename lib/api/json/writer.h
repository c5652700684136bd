// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/codec/json_value.h"

namespace cachewarm::api::json {

// Returns `text` cut to at most `bytes_max` bytes, never inside a UTF-8 sequence.
std::string Cut(std::string_view text, size_t bytes_max);

// Builds one JSON object for server-side apply. Omits empty and zero values: the API server then
// removes a member whose value has become zero. Cuts strings and lists to the limits of the schema,
// because the API server rejects the whole status for one value that is too long. A list that is
// too long keeps its last items, which are the newest.
class Writer {
 public:
  Writer& Put(std::string_view name, std::string_view text, size_t bytes_max);
  Writer& Put(std::string_view name, int64_t value);
  // Writes seconds, rounded to milliseconds; whole numbers as integers. Omits NaN and infinity.
  Writer& Put(std::string_view name, double value);
  // Writes the time as RFC 3339, with milliseconds only if they are not zero.
  Writer& Put(std::string_view name, WallTime time);
  Writer& Put(std::string_view name, const Digest& digest);
  Writer& Put(std::string_view name, const std::vector<std::string>& items, size_t items_max,
              size_t bytes_max = SIZE_MAX);
  Writer& Put(std::string_view name, const std::map<std::string, std::string>& items);
  // Writes an object or list that is encoded already. Omits an empty one and null.
  Writer& PutPart(std::string_view name, codec::Json part);
  // Writes the value even if it is false, zero or empty, for members that a reader requires.
  Writer& Always(std::string_view name, codec::Json value);

  codec::Json Take() { return std::move(object_); }

 private:
  codec::Json object_ = codec::Json::object();
};

// Returns the list of the results of `encode` for the last `items_max` items.
template <typename T, typename Encode>
codec::Json ListOf(const std::vector<T>& items, size_t items_max, const Encode& encode) {
  codec::Json list = codec::Json::array();
  const size_t first = items.size() > items_max ? items.size() - items_max : 0;
  for (size_t i = first; i < items.size(); ++i) {
    list.push_back(encode(items[i]));
  }
  return list;
}

}  // namespace cachewarm::api::json

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

// `text` cut to at most `bytes_max` bytes, never inside a UTF-8 sequence.
std::string Cut(std::string_view text, size_t bytes_max);

// Builds one JSON object as server-side apply wants it: what is empty or zero is left out, so that
// the object reads back as it was written and a value that goes back to zero is removed. Strings
// and lists are cut to the schema's limits, because one value too long would make the API server
// refuse the whole status. Lists keep their last items: those are the newest.
class Writer {
 public:
  Writer& Put(std::string_view name, std::string_view text, size_t bytes_max);
  Writer& Put(std::string_view name, int64_t value);
  // Seconds: rounded to milliseconds, whole numbers written as integers; NaN and infinity left out.
  Writer& Put(std::string_view name, double value);
  // RFC 3339; milliseconds only where there are some.
  Writer& Put(std::string_view name, WallTime time);
  Writer& Put(std::string_view name, const Digest& digest);
  Writer& Put(std::string_view name, const std::vector<std::string>& items, size_t items_max);
  Writer& Put(std::string_view name, const std::map<std::string, std::string>& items);
  // An object or list made elsewhere; left out when it is empty or null.
  Writer& PutPart(std::string_view name, codec::Json part);
  // Written even when it is false, zero or empty: for members that a reader depends on.
  Writer& Always(std::string_view name, codec::Json value);

  codec::Json Take() { return std::move(object_); }

 private:
  codec::Json object_ = codec::Json::object();
};

// The objects that `encode` makes of the last `items_max` of `items`.
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

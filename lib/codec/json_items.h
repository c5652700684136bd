// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/codec/json.h"

namespace cachewarm::codec {

// Arguments of ParseJsonItems(), which parses one JSON object and passes the items of its member
// `list`, an array of objects, to `each` as soon as each item is read, so that a page of 500 items
// never exists as one tree. The result lacks these items, and members named `unread` at any depth.
// Some items may have been passed on before an error is found.
struct ItemsOf {
  std::string_view list;
  std::string_view unread;
};
absl::StatusOr<Json> ParseJsonItems(std::string_view text, const ItemsOf& what,
                                    const std::function<void(Json)>& each,
                                    const JsonLimits& limits = {});

}  // namespace cachewarm::codec

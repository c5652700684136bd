// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/codec/json.h"

namespace cachewarm::codec {

// Arguments of ParseJsonItems(). The function parses one JSON object whose member `list` is an
// array of objects. It passes each item to `each` as soon as the item is read, so that a page of
// 500 items never exists as one tree. The result is the object without these items. Members named
// `unread` are dropped at any depth, also from items. Before an error is returned, some items may
// already have been passed to `each`.
struct ItemsOf {
  std::string_view list;
  std::string_view unread;
};
absl::StatusOr<Json> ParseJsonItems(std::string_view text, const ItemsOf& what,
                                    const std::function<void(Json)>& each,
                                    const JsonLimits& limits = {});

}  // namespace cachewarm::codec

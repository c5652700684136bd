// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/codec/json.h"

namespace cachewarm::codec {

// Parses one JSON object of which the items of the member `list`, an array of objects, go to `each`
// as soon as they are read: a page of 500 of them is never one tree. They are missing in what is
// returned. Members called `unread`, at any depth, are not built. Items may have been given before
// an error is found.
struct ItemsOf {
  std::string_view list;
  std::string_view unread;
};
absl::StatusOr<Json> ParseJsonItems(std::string_view text, const ItemsOf& what,
                                    const std::function<void(Json)>& each,
                                    const JsonLimits& limits = {});

}  // namespace cachewarm::codec

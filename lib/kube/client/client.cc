// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client/client.h"

#include <utility>

#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/object.h"

namespace cachewarm::kube {

using codec::Json;

absl::StatusOr<std::string> Client::DoText(const Request&, std::stop_token) {
  return absl::UnimplementedError("this client reads no text");
}

absl::StatusOr<Json> Client::DoList(const Request& request, const ItemHandler& on_item,
                                    std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(Json page, Do(request, stop));
  if (codec::ListAt(page, {"items"}).empty()) {
    return page;
  }
  for (Json& item : page["items"]) {
    if (item.is_object() && item.contains("metadata") && item["metadata"].is_object()) {
      item["metadata"].erase("managedFields");
    }
    on_item(std::move(item));
  }
  page["items"] = Json::array();
  return page;
}

}  // namespace cachewarm::kube

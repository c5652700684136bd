// SPDX-License-Identifier: Apache-2.0
#include "operator/render/node.h"

#include <fmt/format.h>

#include "lib/api/startup_taint.h"
#include "lib/codec/json_value.h"

namespace cachewarm::render {

using codec::Json;

Json StartupTaintPatch(const api::Node& node) {
  Json patch = Json::array();
  patch.push_back({{"op", "test"}, {"path", "/metadata/uid"}, {"value", node.meta.uid}});
  // Remove from last to first, so that a removal does not shift the index of a taint that is tested
  // later.
  for (size_t i = node.taints.size(); i-- > 0;) {
    const api::Taint& taint = node.taints[i];
    if (api::IsStartupTaint(taint.key)) {
      const std::string path = fmt::format("/spec/taints/{}", i);
      patch.push_back({{"op", "test"}, {"path", path + "/key"}, {"value", taint.key}});
      patch.push_back({{"op", "test"}, {"path", path + "/effect"}, {"value", taint.effect}});
      patch.push_back({{"op", "remove"}, {"path", path}});
    }
  }
  return patch;
}

}  // namespace cachewarm::render

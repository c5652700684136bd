// SPDX-License-Identifier: Apache-2.0
#include "operator/render/node.h"

#include <fmt/format.h>

#include "lib/api/names.h"
#include "lib/api/startup_taint.h"
#include "lib/codec/json_value.h"
#include "operator/render/fields.h"

namespace cachewarm::render {

using codec::Json;

namespace {

std::string TransitionTime(const Json& node, const std::string& status, WallTime now) {
  for (const Json& each : List(node, {"status", "conditions"})) {
    std::string since = Text(each, "lastTransitionTime");
    if (Text(each, "type") == api::kNodeCondition && Text(each, "status") == status &&
        !since.empty()) {
      return since;
    }
  }
  return FormatTime(std::chrono::floor<std::chrono::seconds>(now));
}

}  // namespace

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

Json NodeConditionApply(const Json& node, const std::optional<api::NodeCondition>& condition,
                        WallTime now) {
  const Json* metadata = Find(node, {"metadata"});
  Json body = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", Json::object()}};
  if (metadata != nullptr) {
    body["metadata"] = {{"name", Text(*metadata, "name")}, {"uid", Text(*metadata, "uid")}};
  }
  if (condition.has_value()) {
    body["status"] = {
        {"conditions",
         Json::array({{{"type", std::string(api::kNodeCondition)},
                       {"status", condition->status},
                       {"reason", condition->reason},
                       {"message", condition->message},
                       {"lastTransitionTime", TransitionTime(node, condition->status, now)}}})}};
  }
  return body;
}

}  // namespace cachewarm::render

// SPDX-License-Identifier: Apache-2.0
#include "operator/render/node.h"

#include <gtest/gtest.h>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::render {
namespace {

using codec::Json;

Json Parse(const std::string& text) {
  return codec::ParseJson(text).value();
}

const WallTime kNow = ParseTime("2026-01-01T00:01:00Z").value();

TEST(StartupTaintPatch, RemovesTaintsFromLastToFirst) {
  api::Node node;
  node.meta.uid = "uid-a";
  node.taints = {
      {.key = "cachewarm.io/warming", .effect = "NoSchedule"},
      {.key = "team", .value = "x", .effect = "NoSchedule"},
      {.key = "startup-taint.cluster-autoscaler.kubernetes.io/cachewarm", .effect = "NoExecute"}};
  EXPECT_EQ(StartupTaintPatch(node), Parse(R"([
    {"op": "test", "path": "/metadata/uid", "value": "uid-a"},
    {"op": "test", "path": "/spec/taints/2/key",
     "value": "startup-taint.cluster-autoscaler.kubernetes.io/cachewarm"},
    {"op": "test", "path": "/spec/taints/2/effect", "value": "NoExecute"},
    {"op": "remove", "path": "/spec/taints/2"},
    {"op": "test", "path": "/spec/taints/0/key", "value": "cachewarm.io/warming"},
    {"op": "test", "path": "/spec/taints/0/effect", "value": "NoSchedule"},
    {"op": "remove", "path": "/spec/taints/0"}])"));
}

TEST(NodeConditionApply, KeepsTransitionTimeOfUnchangedStatus) {
  const Json node = Parse(R"({"metadata": {"name": "a", "uid": "uid-a", "labels": {"x": "y"}},
    "status": {"conditions": [{"type": "Ready", "status": "True"},
      {"type": "cachewarm.io/Warm", "status": "False", "reason": "Warming",
       "lastTransitionTime": "2026-01-01T00:00:07Z"}]}})");
  const api::NodeCondition other{.status = "False", .reason = "BundleFailed", .message = "why"};
  EXPECT_EQ(NodeConditionApply(node, other, kNow), Parse(R"({"apiVersion": "v1", "kind": "Node",
    "metadata": {"name": "a", "uid": "uid-a"},
    "status": {"conditions": [{"type": "cachewarm.io/Warm", "status": "False",
      "reason": "BundleFailed", "message": "why",
      "lastTransitionTime": "2026-01-01T00:00:07Z"}]}})"));
  const api::NodeCondition warm{.status = "True", .reason = "Warm"};
  EXPECT_EQ(NodeConditionApply(node, warm, kNow)["status"]["conditions"][0]["lastTransitionTime"],
            "2026-01-01T00:01:00Z");
}

TEST(NodeConditionApply, EmptyStatusRemovesTheCondition) {
  const Json node = Parse(R"({"metadata": {"name": "a", "uid": "uid-a"}})");
  EXPECT_FALSE(NodeConditionApply(node, std::nullopt, kNow).contains("status"));
}

}  // namespace
}  // namespace cachewarm::render

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

}  // namespace
}  // namespace cachewarm::render

// SPDX-License-Identifier: Apache-2.0
#include "operator/render/dry_run_pod.h"

#include <gtest/gtest.h>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::render {
namespace {

using codec::Json;

Json SpecOf(const std::string& pod_spec) {
  const api::CacheWarmup warmup{.ns = "models", .name = "llama", .uid = "7d0f"};
  const Json pod_template = {{"spec", codec::ParseJson(pod_spec).value()}};
  const DryRunPods pods = MakeDryRunPods(
      {.warmup = warmup, .pod_template = pod_template, .mount = {.container = "server"}});
  return (*pods.unmodified)["spec"];
}

// The API server refuses a probe without a handler, claims of a container that the pod does not
// have, and an overhead without a runtime class; the operator keeps no more of a pod.
TEST(AdmissionDryRun, WhatIsHalfThereInATemplateThatWasLearntFromAPodIsLeftOut) {
  const Json spec = SpecOf(R"({
    "overhead": {"cpu": "1"},
    "containers": [{"name": "server", "readinessProbe": {},
                    "resources": {"limits": {"cpu": 1}, "claims": [{"name": "gpu"}]}}],
    "initContainers": [{"name": "sidecar", "readinessProbe": {}}]})");
  EXPECT_EQ(spec, codec::ParseJson(R"({
    "containers": [{"name": "server", "resources": {"limits": {"cpu": 1}}}],
    "initContainers": [{"name": "sidecar"}]})")
                      .value());
}

TEST(AdmissionDryRun, WhatIsWholeStays) {
  const char* whole = R"({
    "overhead": {"cpu": "1"}, "runtimeClassName": "kata", "resourceClaims": [{"name": "gpu"}],
    "containers": [{"name": "server", "readinessProbe": {"exec": {"command": ["true"]}},
                    "resources": {"claims": [{"name": "gpu"}]}}]})";
  EXPECT_EQ(SpecOf(whole), codec::ParseJson(whole).value());
}

}  // namespace
}  // namespace cachewarm::render

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {

inline constexpr int kCold = 20;
inline constexpr int kLimit = 320;  // kCold and the default of hangSeconds

// Bundle "a" was published at 50 by a pod that needed kCold seconds, and is active on both nodes.
class HungStarts : public testing::Test {
 protected:
  HungStarts() {
    builder.Node({.name = "n1"}).Node({.name = "n2"}).Accepted();
    builder.Bundle({.node = "n1", .published = 50, .active = {"n1", "n2"}});
    key = builder.Key("n1");
    SetCold(kCold);
    builder.status().builders = {{.key = key,
                                  .gpu_type = "cpu",
                                  .cpu_class = fakes::kAvx512,
                                  .image = "server:1",
                                  .revision = "r1",
                                  .pod_uid = "uid-builder",
                                  .pod_name = "builder",
                                  .node = "n1",
                                  .state = api::BuilderState::kCaptured,
                                  .elected_time = fakes::At(10),
                                  .finished_time = fakes::At(40)}};
    PlanAt(100);
  }

  void SetCold(double seconds) {
    builder.status().starts.recent = {{.pod_uid = "uid-builder",
                                       .key = key,
                                       .gpu_type = "cpu",
                                       .result = api::StartResult::kBuilder,
                                       .start_seconds = seconds}};
  }

  // Plans and applies status and node entries.
  Plan PlanAt(int now) {
    builder.Now(now).DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
    Plan plan = builder.Decide();
    builder.Apply(plan);
    return plan;
  }

  void Start(const std::string& name, const std::string& node, int started) {
    builder.Pod({.name = name, .node = node, .created = started - 5, .started = started});
  }

  // The agents have replaced the trees of the suspended bundle.
  void ReplaceTrees() {
    builder.reported("n1").bundles.clear();
    builder.reported("n2").bundles.clear();
  }

  void SuspendFirst() {
    Start("p", "n1", 110);
    Start("q", "n2", 110);
    PlanAt(110 + kLimit);
    ASSERT_EQ(builder.status().suspended_bundles.size(), 1U);
    ReplaceTrees();
  }

  // Number of hung starts of the only bundle.
  size_t hung() {
    EXPECT_EQ(status().bundles.size(), 1U);
    return status().bundles.at(0).hung_starts.size();
  }
  const api::WarmupStatus& status() { return builder.status(); }
  const api::WantedWarmup& entry(const std::string& node) {
    return builder.cache(node).spec.warmups.at(0);
  }

  fakes::SnapshotBuilder builder;
  std::string key;
};

}  // namespace cachewarm::plan

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/snapshot_builder.h"

// Starts on nodes that got the bundle of the pod's key only later.
namespace cachewarm::plan {
namespace {

using api::StartResult;
using fakes::At;
using fakes::SnapshotBuilder;

void Evidence(SnapshotBuilder& builder, const std::string& pod, StartResult result,
              double compile_seconds) {
  builder.cache("n1").status.starts.push_back({.pod_uid = "uid-" + pod,
                                               .result = result,
                                               .compile_seconds = compile_seconds,
                                               .compiled_after_seconds = compile_seconds + 2});
}

// The node had the tree of an earlier bundle when the pod started at 90, and fetched the new one
// while the pod compiled.
TEST(Starts, StartBeforeTheNodeHadTheBundleIsCold) {
  struct Case {
    int granted;
    double fetch_seconds;
    StartResult seen;
    StartResult counted;
  };
  for (const Case& c : {Case{85, 10, StartResult::kMiss, StartResult::kCold},
                        Case{85, 10, StartResult::kPartial, StartResult::kCold},
                        Case{85, 10, StartResult::kHit, StartResult::kHit},
                        Case{85, 4, StartResult::kMiss, StartResult::kMiss},
                        Case{85, 4, StartResult::kPartial, StartResult::kPartial}}) {
    SnapshotBuilder builder;
    builder.Node({.name = "n1"});
    builder.Accepted();
    builder.Bundle({.node = "n1", .published = 10, .compile_seconds = 12, .active = {"n1"}});
    for (const NodeEntries& wants : builder.Decide().nodes) {
      builder.cache(wants.node).spec = wants.spec;
    }
    ASSERT_EQ(builder.cache("n1").spec.warmups.size(), 1U);
    builder.cache("n1").spec.warmups[0].fetch_granted_time = At(c.granted);
    builder.reported("n1").bundles[0].fetch_seconds = c.fetch_seconds;
    builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 110});
    Evidence(builder, "a", c.seen, 15);
    const Plan plan = builder.Decide();
    ASSERT_EQ(plan.starts_counted.size(), 1U);
    EXPECT_EQ(api::Name(plan.starts_counted[0].result), api::Name(c.counted))
        << c.fetch_seconds << api::Name(c.seen);
  }
}

TEST(Starts, PartialHitFromASeedIsPartial) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  builder.Bundle({.node = "n1", .image = "server:0", .published = 10, .active = {"n1"}});
  builder.Pod({.name = "b", .node = "n1", .created = 80, .started = 90});
  builder.Pod({.name = "a", .node = "n1", .created = 80, .started = 90, .ready = 110});
  Evidence(builder, "a", StartResult::kPartial, 5);
  for (const api::StartSample& sample : builder.Decide().starts_counted) {
    EXPECT_NE(sample.result, StartResult::kCold) << "no bundle of its key exists";
  }
}

}  // namespace
}  // namespace cachewarm::plan

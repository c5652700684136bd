// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "lib/api/reasons.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::ReleaseOf;
using fakes::SnapshotBuilder;
using Texts = std::map<std::string, std::string>;

// Mode Hold with a warming node: an ordinary pod is held.
SnapshotBuilder Holding() {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"}).Accepted();
  builder.Bundle({.node = "n1"});
  builder.Pod({.name = "p", .held = true, .created = 98});
  return builder;
}

std::string ReasonFor(const SnapshotBuilder& builder) {
  const Plan plan = builder.Decide();
  const GateRelease* release = ReleaseOf(plan, "p");
  return release == nullptr ? "held" : release->reason;
}

void PodWith(SnapshotBuilder& builder, const Texts& labels, const std::vector<std::string>& gates) {
  builder.Pod({.name = "p", .held = true, .created = 98, .labels = labels, .other_gates = gates});
}

struct NeverCase {
  const char* name;
  void (*change)(SnapshotBuilder&);
  const char* reason;
  bool gated;  // status.injection.gate for new pods
};

class NeverHeld : public testing::TestWithParam<NeverCase> {};

TEST_P(NeverHeld, PodIsReleasedAtOnceWithReason) {
  SnapshotBuilder builder = Holding();
  ASSERT_EQ(ReasonFor(builder), "held");
  ASSERT_TRUE(builder.Decide().status.injection->gate);
  GetParam().change(builder);
  EXPECT_EQ(ReasonFor(builder), GetParam().reason);
  EXPECT_EQ(builder.Decide().status.injection->gate, GetParam().gated);
  const auto& all = api::reason::kReleaseReasons;
  EXPECT_NE(std::find(std::begin(all), std::end(all), GetParam().reason), std::end(all));
}

INSTANTIATE_TEST_SUITE_P(
    All, NeverHeld,
    testing::Values(
        NeverCase{"recreate", [](SnapshotBuilder& b) { b.in().constraints.recreate = true; },
                  "ReleasedRecreate", false},
        NeverCase{"no_surge", [](SnapshotBuilder& b) { b.in().constraints.no_surge = true; },
                  "ReleasedNoSurge", false},
        NeverCase{"in_order", [](SnapshotBuilder& b) { b.in().constraints.in_order = true; },
                  "ReleasedInOrder", false},
        NeverCase{"job_deadline",
                  [](SnapshotBuilder& b) { b.in().constraints.job_deadline = true; },
                  "ReleasedJobDeadline", false},
        NeverCase{"below_min_available",
                  [](SnapshotBuilder& b) {
                    b.status().min_available = 3;
                    b.in().constraints = {.available = 2, .required = 3};
                  },
                  "ReleasedBelowMinAvailable", false},
        NeverCase{"pod_of_an_unknown_gang",
                  [](SnapshotBuilder& b) {
                    PodWith(b, {{"grove.io/podgang", "g"}}, {});
                  },
                  "ReleasedUnknownGang", true},
        NeverCase{"template_of_an_unknown_gang",
                  [](SnapshotBuilder& b) {
                    b.pod_template()["metadata"]["labels"]["grove.io/podgang"] = "g";
                  },
                  "ReleasedUnknownGang", false},
        NeverCase{"gate_of_kueue",
                  [](SnapshotBuilder& b) { PodWith(b, {}, {"kueue.x-k8s.io/admission"}); },
                  "ReleasedOtherGate", true},
        NeverCase{"gate_of_grove",
                  [](SnapshotBuilder& b) {
                    PodWith(b, {{"grove.io/podgang", "g"}}, {"grove.io/podgang-pending-creation"});
                  },
                  "ReleasedOtherGate", true},
        NeverCase{"template_for_kueue",
                  [](SnapshotBuilder& b) {
                    b.pod_template()["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "q";
                  },
                  "ReleasedOtherGate", false},
        NeverCase{"template_that_kueue_has_admitted",
                  [](SnapshotBuilder& b) {
                    b.pod_template()["metadata"]["labels"]["kueue.x-k8s.io/podset"] = "main";
                  },
                  "ReleasedOtherGate", false},
        NeverCase{"pod_that_kueue_has_admitted",
                  [](SnapshotBuilder& b) {
                    PodWith(b, {{"kueue.x-k8s.io/queue-name", "q"}}, {});
                  },
                  "ReleasedOtherGate", true},
        NeverCase{"workload_of_a_queue",
                  [](SnapshotBuilder& b) { b.in().constraints.queued = true; }, "ReleasedOtherGate",
                  false},
        NeverCase{"no_room", [](SnapshotBuilder& b) { b.view("n1").free["pods"] = 0; },
                  "ReleasedNoCapacity", false}),
    [](const auto& each) { return each.param.name; });

struct MinimumCase {
  const char* name;
  int64_t before;  // status.minAvailable
  int64_t available;
  int64_t required;
  int64_t after;
  bool held;
};

class MinAvailable : public testing::TestWithParam<MinimumCase> {};

TEST_P(MinAvailable, MinimumCountsOnlyPodsOnceAvailable) {
  SnapshotBuilder builder = Holding();
  builder.status().min_available = GetParam().before;
  builder.in().constraints = {.available = GetParam().available, .required = GetParam().required};
  EXPECT_EQ(ReasonFor(builder), GetParam().held ? "held" : "ReleasedBelowMinAvailable");
  EXPECT_EQ(builder.Decide().status.min_available, GetParam().after);
}

INSTANTIATE_TEST_SUITE_P(All, MinAvailable,
                         testing::Values(MinimumCase{"first_start", 0, 0, 3, 0, true},
                                         MinimumCase{"reached", 0, 3, 3, 3, true},
                                         MinimumCase{"scaled_up", 3, 3, 9, 3, true},
                                         MinimumCase{"scaled_down", 9, 9, 3, 3, true},
                                         MinimumCase{"lost_one_of_three", 3, 2, 3, 3, false},
                                         MinimumCase{"lost_while_scaled_up", 3, 2, 9, 3, false},
                                         MinimumCase{"scaled_to_nothing", 3, 0, 0, 0, true}),
                         [](const auto& each) { return each.param.name; });

TEST(NeverHeldPod, UnusableNodeEndsInjection) {
  SnapshotBuilder builder = Holding();
  builder.Node({.name = "bad", .agent = false, .prepared = false});
  EXPECT_EQ(fakes::ReasonOf(builder.Decide(), "Ready"), "Injecting");
  builder.in().constraints.recreate = true;
  EXPECT_EQ(fakes::ReasonOf(builder.Decide(), "Ready"), "DirectoryUnusable");
}

}  // namespace
}  // namespace cachewarm::plan

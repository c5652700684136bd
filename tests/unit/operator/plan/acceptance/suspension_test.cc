// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::At;
using fakes::PodSetup;
using fakes::ReasonOf;
using fakes::SnapshotBuilder;

const PodSetup kCrashing = {
    .name = "bad", .node = "n1", .created = 50, .restarts = 2, .words = "Error: exit 1"};

void Remove(SnapshotBuilder& builder, const std::string& node) {
  std::erase_if(builder.in().nodes,
                [&](const NodeView& view) { return view.node->meta.name == node; });
}

void Replace(SnapshotBuilder& builder, const std::string& node) {
  builder.node(node).meta.uid = "another";
  builder.cache(node).node_uid = "another";
}

// Plans once and applies the status.
Plan Next(SnapshotBuilder& builder) {
  Plan plan = builder.Decide();
  builder.status() = plan.status;
  if (plan.set_inject_label == false) {
    builder.warmup().labels.clear();
  }
  return plan;
}

SnapshotBuilder Injecting() {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"}).Node({.name = "n2"}).Node({.name = "n3"});
  for (const char* name : {"n1", "n2", "n3"}) {
    builder.node(name).boot_id = "1f2e3d4c";
  }
  builder.Accepted();
  return builder;
}

SnapshotBuilder SuspendedFor(const std::vector<PodSetup>& pods) {
  SnapshotBuilder builder = Injecting();
  for (const PodSetup& pod : pods) {
    builder.Pod(pod);
  }
  Next(builder);
  return builder;
}

SnapshotBuilder VolumeRejected() {
  SnapshotBuilder builder = Injecting();
  builder.Pod({.name = "bad", .node = "n1", .created = 90});
  builder.in().mount_failures = {{"uid-bad", "volume \"cachewarm\""}};
  Next(builder);
  builder.in().mount_failures.clear();
  return builder;
}

TEST(Suspension, StatusRecordsConditionsOfSuspension) {
  SnapshotBuilder builder = SuspendedFor({kCrashing});
  ASSERT_TRUE(builder.status().suspension.has_value());
  const api::Suspension& suspension = *builder.status().suspension;
  EXPECT_EQ(suspension.reason, "PodsCrashing");
  EXPECT_EQ(suspension.message, fakes::Condition(builder.Decide(), "Ready")->message);
  EXPECT_EQ(suspension.suspended_time, At(100));
  EXPECT_EQ(suspension.generation, 1);
  EXPECT_EQ(suspension.revision, "r1");
  EXPECT_EQ(
      suspension.nodes,
      (std::vector<api::NodeIdentity>{{.name = "n1", .uid = "uid-n1", .boot_id = "1f2e3d4c"}}));
  EXPECT_EQ(suspension.resumed_time, WallTime{});
}

TEST(Suspension, SuspensionOutlivesPod) {
  for (SnapshotBuilder builder : {SuspendedFor({kCrashing}), VolumeRejected()}) {
    const std::string reason = builder.status().suspension->reason;
    const std::string message = builder.status().suspension->message;
    builder.in().pods.clear();
    for (const int second : {101, 700, 100'000}) {
      builder.Now(second).DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
      const Plan plan = Next(builder);
      EXPECT_EQ(ReasonOf(plan, "Ready"), reason);
      EXPECT_EQ(fakes::Condition(plan, "Ready")->message, message);
      EXPECT_FALSE(plan.status.injection.has_value());
    }
  }
}

TEST(Suspension, StandingSuspensionWritesNothing) {
  SnapshotBuilder builder = SuspendedFor({kCrashing});
  builder.Pod(
      {.name = "bad", .node = "n1", .created = 50, .restarts = 7, .words = "Error: exit 2"});
  builder.Now(200);
  EXPECT_FALSE(builder.Decide().status_changed);
}

struct ChangeCase {
  const char* name;
  void (*change)(SnapshotBuilder&);
  const char* reason;
};

class SuspensionChange : public testing::TestWithParam<ChangeCase> {};

// The pod crashed on n1 and was deleted.
TEST_P(SuspensionChange, ResumesOnlyWhenConditionsChange) {
  SnapshotBuilder builder = SuspendedFor({kCrashing});
  builder.in().pods.clear();
  GetParam().change(builder);
  builder.Now(200).DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
  const Plan plan = Next(builder);
  EXPECT_EQ(ReasonOf(plan, "Ready"), GetParam().reason);
  EXPECT_EQ(plan.status.suspension.has_value(),
            std::string_view("PodsCrashing") == GetParam().reason);
}

const ChangeCase kChanges[] = {
    {"template",
     [](SnapshotBuilder& b) {
       b.pod_template()["metadata"]["annotations"] = {{"restartedAt", "now"}};
     },
     "Injecting"},
    {"image",
     [](SnapshotBuilder& b) { b.pod_template()["spec"]["containers"][0]["image"] = "server:2"; },
     "Injecting"},
    {"warmup", [](SnapshotBuilder& b) { b.warmup().generation = 2; }, "Injecting"},
    {"policy_of_the_namespace",
     [](SnapshotBuilder& b) {
       b.in().namespace_labels = {{"team", "blue"}};
     },
     "Injecting"},
    {"root", [](SnapshotBuilder& b) { b.in().settings.root = "/mnt/cachewarm"; }, "Injecting"},
    {"environment", [](SnapshotBuilder& b) { b.warmup().spec.caches = {{.name = "triton"}}; },
     "Injecting"},
    {"node_gone", [](SnapshotBuilder& b) { Remove(b, "n1"); }, "Injecting"},
    {"node_replaced_under_its_name", [](SnapshotBuilder& b) { Replace(b, "n1"); }, "Injecting"},
    {"node_started_again", [](SnapshotBuilder& b) { b.node("n1").boot_id = "55667788"; },
     "Injecting"},
    {"no_change", [](SnapshotBuilder&) {}, "PodsCrashing"},
    {"a_node_joins", [](SnapshotBuilder& b) { b.Node({.name = "n4"}); }, "PodsCrashing"},
    {"another_node_gone", [](SnapshotBuilder& b) { Remove(b, "n2"); }, "PodsCrashing"},
    {"another_node_started_again", [](SnapshotBuilder& b) { b.node("n2").boot_id = "55667788"; },
     "PodsCrashing"},
    {"node_not_ready", [](SnapshotBuilder& b) { b.node("n1").ready = false; }, "PodsCrashing"},
    {"pod_without_us",
     [](SnapshotBuilder& b) {
       b.Pod({.name = "plain",
              .node = "n1",
              .injected = false,
              .created = 150,
              .started = 151,
              .ready = 160});
     },
     "PodsCrashing"},
};

INSTANTIATE_TEST_SUITE_P(All, SuspensionChange, testing::ValuesIn(kChanges),
                         [](const auto& each) { return each.param.name; });

TEST(Suspension, ResumesOnlyWhenAllAffectedNodesChange) {
  PodSetup second = kCrashing;
  second.name = "bad2";
  second.node = "n2";
  SnapshotBuilder builder = SuspendedFor({kCrashing});
  builder.Pod(second);
  Next(builder);
  EXPECT_EQ(builder.status().suspension->nodes.size(), 2U);
  builder.node("n1").boot_id = "55667788";
  EXPECT_EQ(ReasonOf(Next(builder), "Ready"), "PodsCrashing");
  Replace(builder, "n2");
  EXPECT_EQ(ReasonOf(Next(builder), "Ready"), "Injecting");
}

TEST(Suspension, RecordsAtMostSixteenNodes) {
  SnapshotBuilder builder = Injecting();
  for (int i = 0; i < 20; ++i) {
    const std::string name = "m" + std::to_string(i);
    builder.Node({.name = name});
    PodSetup pod = kCrashing;
    pod.name = "bad" + std::to_string(i);
    pod.node = name;
    builder.Pod(pod);
  }
  Next(builder);
  EXPECT_EQ(builder.status().suspension->nodes.size(), 16U);
}

TEST(Suspension, PodsFromBeforeResumptionDoNotCount) {
  SnapshotBuilder builder = SuspendedFor({kCrashing});
  builder.pod_template()["spec"]["containers"][0]["args"] = {"--fixed"};
  builder.Now(200).DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
  EXPECT_EQ(ReasonOf(Next(builder), "Ready"), "Injecting");
  EXPECT_EQ(builder.status().suspension->resumed_time, At(200));
  builder.Now(210);
  EXPECT_EQ(ReasonOf(Next(builder), "Ready"), "Injecting") << "the rollout takes its time";
  PodSetup fresh = kCrashing;
  fresh.name = "fresh";
  fresh.revision = "r2";
  fresh.created = 205;
  builder.Pod(fresh);
  EXPECT_EQ(ReasonOf(Next(builder), "Ready"), "PodsCrashing");
  EXPECT_EQ(builder.status().suspension->suspended_time, At(210));
  EXPECT_EQ(builder.status().suspension->revision, "r2");
}

TEST(Suspension, IsRemovedWithLastPodFromBeforeResumption) {
  SnapshotBuilder builder = SuspendedFor({kCrashing});
  builder.warmup().generation = 2;
  Next(builder);
  EXPECT_TRUE(builder.status().suspension.has_value());
  builder.in().pods.clear();
  Next(builder);
  EXPECT_FALSE(builder.status().suspension.has_value());
}

TEST(Suspension, ResumesWhenThePodBecomesReady) {
  SnapshotBuilder builder = SuspendedFor({kCrashing});
  PodSetup well = kCrashing;
  well.started = 110;
  well.ready = 120;
  builder.Now(130).Pod(well);
  EXPECT_EQ(ReasonOf(Next(builder), "Ready"), "Injecting");
}

TEST(Suspension, ResumesWhenPodsCrashWithoutTheCacheToo) {
  SnapshotBuilder builder = SuspendedFor({kCrashing});
  PodSetup plain = kCrashing;
  plain.name = "plain";
  plain.injected = false;
  builder.Now(130).Pod(plain);
  EXPECT_EQ(ReasonOf(Next(builder), "Ready"), "Injecting");
}

TEST(Suspension, VolumeSuspensionEndsWhenInjectedPodStartsOnTheNode) {
  for (const auto& [node, reason] : {std::pair("n1", "Injecting"), {"n2", "VolumeRejected"}}) {
    SnapshotBuilder builder = VolumeRejected();
    builder.in().pods.clear();
    builder.Pod({.name = "other", .node = node, .created = 95, .started = 110});
    builder.Now(130);
    EXPECT_EQ(ReasonOf(Next(builder), "Ready"), reason) << node;
  }
}

TEST(Suspension, SelectorSuspensionLastsUntilPodOfAnotherRevision) {
  SnapshotBuilder builder = Injecting();
  builder.in().workload = {.kind = WorkloadKind::kSelector, .found = true};
  builder.in().workload.selector = {{"app", "llama"}};
  builder.Pod(kCrashing);
  builder.DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
  EXPECT_EQ(ReasonOf(Next(builder), "Ready"), "PodsCrashing");
  builder.in().pods.clear();
  Next(builder);
  builder.Pod({.name = "plain", .node = "n1", .injected = false, .created = 150});
  EXPECT_EQ(ReasonOf(Next(builder), "Ready"), "PodsCrashing");
  builder.Pod({.name = "new", .injected = false, .revision = "r2", .created = 190});
  builder.Now(200).DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
  EXPECT_EQ(ReasonOf(Next(builder), "Ready"), "Injecting");
}

}  // namespace
}  // namespace cachewarm::plan

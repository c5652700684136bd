// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/nodes/decision.h"

#include <gtest/gtest.h>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::At;

// A node created at 10 and Ready since 20, with a cachewarm startup taint, an agent and no matching
// warmup.
struct Fresh {
  int now = 30;
  bool ready = true;
  int ready_since = 20;
  std::string taint = "cachewarm.io/warming";
  bool agent = true;
  bool facts = true;
  int reported_at = 0;
  std::vector<NodeReadiness> readiness = {{.state = ReadinessState::kNone}};
  bool reports_condition = false;
  std::optional<api::NodeCondition> condition = std::nullopt;
};

NodeDecision Evaluate(const Fresh& fresh) {
  auto node = std::make_shared<api::Node>();
  node->meta.name = "n";
  node->meta.created = At(10);
  node->ready = fresh.ready;
  node->ready_since = fresh.ready ? At(fresh.ready_since) : WallTime{};
  node->warm = fresh.condition;
  node->taints = {{.key = "team", .effect = "NoSchedule"}};
  if (!fresh.taint.empty()) {
    node->taints.push_back({.key = fresh.taint, .effect = "NoSchedule"});
  }
  auto cache = std::make_shared<api::NodeCache>();
  cache->status.node.cpu_class = fresh.facts ? fakes::kAvx2 : "";
  cache->status.heartbeat = fresh.reported_at == 0 ? WallTime{} : At(fresh.reported_at);
  return EvaluateNode({.now = At(fresh.now),
                       .view = {.node = node, .cache = cache, .agent_ready = fresh.agent},
                       .readiness = fresh.readiness,
                       .reports_condition = fresh.reports_condition});
}

const NodeReadiness kWarm{.state = ReadinessState::kWarm};
const NodeReadiness kNone{.state = ReadinessState::kNone};
const NodeReadiness kWarming{.state = ReadinessState::kWarming, .message = "pending"};
const NodeReadiness kFailed{.state = ReadinessState::kFailed, .message = "failed"};

TEST(StartupTaint, IsRemovedForListedReasonsOnly) {
  struct Case {
    const char* what;
    Fresh fresh;
    std::string reason;
  };
  const Case cases[] = {
      {"warm", {.readiness = {kWarm, kNone}}, "Warm"},
      {"the autoscaler's form",
       {.taint = "startup-taint.cluster-autoscaler.kubernetes.io/cachewarm", .readiness = {kWarm}},
       "Warm"},
      {"nothing fits", {.readiness = {kNone, kNone}}, "NoMatchingWarmup"},
      {"no warmup at all, nor an agent", {.agent = false, .readiness = {}}, "NoMatchingWarmup"},
      {"waiting would bring nothing", {.readiness = {kFailed, kWarm}}, "BundleFailed"},
      {"one still waits", {.readiness = {kWarm, kFailed, kWarming}}, ""},
      {"no agent yet", {.agent = false, .readiness = {kNone}}, ""},
      {"an agent that has not looked at the node", {.facts = false, .readiness = {kNone}}, ""},
      {"an agent that reported, not Ready yet",
       {.agent = false, .reported_at = 29, .readiness = {kWarm}},
       "Warm"},
      {"no agent ever comes", {.now = 80, .agent = false, .facts = false}, "DeadlineExceeded"},
      {"a second before", {.now = 79, .agent = false, .facts = false}, ""},
      {"still waits at the deadline", {.now = 80, .readiness = {kWarming}}, "DeadlineExceeded"},
      {"never Ready: its minute has not begun",
       {.now = 900, .ready = false, .readiness = {kWarming}},
       ""},
      {"another's taint", {.taint = "example.com/warming", .readiness = {kWarm}}, ""},
      {"none", {.taint = "", .readiness = {kWarm}}, ""},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(Evaluate(each.fresh).remove_taints_for, each.reason) << each.what;
  }
}

TEST(StartupTaint, RequeuesAtDeadline) {
  EXPECT_EQ(Evaluate({.readiness = {kWarming}}).requeue_after, std::chrono::seconds(50));
  EXPECT_EQ(Evaluate({.ready = false, .readiness = {kWarming}}).requeue_after, std::nullopt);
  EXPECT_EQ(Evaluate({.readiness = {kWarm}}).requeue_after, std::nullopt);
}

TEST(StartupTaint, NodeClockIsNotTrusted) {
  EXPECT_EQ(Evaluate({.now = 70, .ready_since = 5000, .readiness = {kWarming}}).remove_taints_for,
            "DeadlineExceeded")
      << "an hour ahead: counted from its creation";
  EXPECT_EQ(Evaluate({.now = 69, .ready_since = -5000, .readiness = {kWarming}}).remove_taints_for,
            "")
      << "an hour behind";
}

TEST(NodeCondition, NamesWhatTheNodeLacks) {
  struct Case {
    const char* what;
    Fresh fresh;
    api::NodeCondition condition;
  };
  const Case cases[] = {
      {"warm",
       {.taint = "", .readiness = {kWarm}},
       {"True", "Warm", "directories and bundles of all matching CacheWarmups are ready"}},
      {"warming", {.taint = "", .readiness = {kWarm, kWarming}}, {"False", "Warming", "pending"}},
      {"failed", {.taint = "", .readiness = {kFailed}}, {"False", "BundleFailed", "failed"}},
      {"no agent",
       {.taint = "", .agent = false, .readiness = {kWarming}},
       {"Unknown", "AgentNotReady", "no cachewarm agent is ready on this node"}},
      {"a tainted node that nothing fits",
       {.readiness = {kNone}},
       {"True", "NoMatchingWarmup", "no pod of any CacheWarmup can run on this node"}},
      {"one that has the condition already",
       {.taint = "", .readiness = {kNone}, .condition = api::NodeCondition{"True", "Warm", ""}},
       {"True", "NoMatchingWarmup", "no pod of any CacheWarmup can run on this node"}},
      {"without any warmup",
       {.readiness = {}},
       {"True", "NoMatchingWarmup", "there are no CacheWarmups"}},
  };
  for (const Case& each : cases) {
    Fresh fresh = each.fresh;
    fresh.reports_condition = true;
    const NodeDecision verdict = Evaluate(fresh);
    ASSERT_TRUE(verdict.condition.has_value()) << each.what;
    EXPECT_EQ(*verdict.condition, each.condition) << each.what << ": " << verdict.condition->reason;
  }
}

TEST(NodeCondition, UnrelatedNodesHaveNone) {
  EXPECT_EQ(Evaluate({.taint = "", .readiness = {kNone}, .reports_condition = true}).condition,
            std::nullopt);
  EXPECT_EQ(Evaluate({.taint = "", .agent = false, .readiness = {kNone}, .reports_condition = true})
                .condition,
            std::nullopt);
}

TEST(NodeCondition, IsRemovedWhenSettingIsOff) {
  EXPECT_EQ(Evaluate({.readiness = {kWarm}, .condition = api::NodeCondition{"True", "Warm", ""}})
                .condition,
            std::nullopt);
}

}  // namespace
}  // namespace cachewarm::plan

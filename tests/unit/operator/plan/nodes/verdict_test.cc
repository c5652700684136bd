// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/nodes/verdict.h"

#include <gtest/gtest.h>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::At;

// Created at 10, Ready since 20, with our startup taint, an agent and no word of a warmup.
struct Fresh {
  int now = 30;
  bool ready = true;
  int ready_since = 20;
  std::string taint = "cachewarm.io/warming";
  bool agent = true;
  bool facts = true;
  int heard = 0;
  std::vector<NodeClaim> claims = {{.claim = Claim::kNone}};
  bool wants_condition = false;
  std::optional<api::NodeCondition> condition = std::nullopt;
};

NodeVerdict Judge(const Fresh& fresh) {
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
  cache->status.heartbeat = fresh.heard == 0 ? WallTime{} : At(fresh.heard);
  return JudgeNode({.now = At(fresh.now),
                    .view = {.node = node, .cache = cache, .agent_ready = fresh.agent},
                    .claims = fresh.claims,
                    .wants_condition = fresh.wants_condition});
}

const NodeClaim kWarm{.claim = Claim::kWarm};
const NodeClaim kNone{.claim = Claim::kNone};
const NodeClaim kWaits{.claim = Claim::kWaits, .message = "waits"};
const NodeClaim kFailed{.claim = Claim::kFailed, .message = "failed"};

TEST(StartupTaint, GoesForOneReasonOfAClosedList) {
  struct Case {
    const char* what;
    Fresh fresh;
    std::string reason;
  };
  const Case cases[] = {
      {"warm", {.claims = {kWarm, kNone}}, "Warm"},
      {"the autoscaler's form",
       {.taint = "startup-taint.cluster-autoscaler.kubernetes.io/cachewarm", .claims = {kWarm}},
       "Warm"},
      {"nothing fits", {.claims = {kNone, kNone}}, "NothingFits"},
      {"no warmup at all, nor an agent", {.agent = false, .claims = {}}, "NothingFits"},
      {"waiting would bring nothing", {.claims = {kFailed, kWarm}}, "BundleFailed"},
      {"one still waits", {.claims = {kWarm, kFailed, kWaits}}, ""},
      {"no agent yet", {.agent = false, .claims = {kNone}}, ""},
      {"an agent that has not looked at the node", {.facts = false, .claims = {kNone}}, ""},
      {"an agent that reported, not Ready yet",
       {.agent = false, .heard = 29, .claims = {kWarm}},
       "Warm"},
      {"no agent ever comes", {.now = 80, .agent = false, .facts = false}, "Deadline"},
      {"a second before", {.now = 79, .agent = false, .facts = false}, ""},
      {"still waits at the deadline", {.now = 80, .claims = {kWaits}}, "Deadline"},
      {"never Ready: its minute has not begun",
       {.now = 900, .ready = false, .claims = {kWaits}},
       ""},
      {"another's taint", {.taint = "example.com/warming", .claims = {kWarm}}, ""},
      {"none", {.taint = "", .claims = {kWarm}}, ""},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(Judge(each.fresh).remove_taints_for, each.reason) << each.what;
  }
}

TEST(StartupTaint, IsLookedAtAgainAtItsDeadlineAndNotBefore) {
  EXPECT_EQ(Judge({.claims = {kWaits}}).look_again, std::chrono::seconds(50));
  EXPECT_EQ(Judge({.ready = false, .claims = {kWaits}}).look_again, std::nullopt);
  EXPECT_EQ(Judge({.claims = {kWarm}}).look_again, std::nullopt);
}

TEST(StartupTaint, ANodesClockIsNotTrusted) {
  EXPECT_EQ(Judge({.now = 70, .ready_since = 5000, .claims = {kWaits}}).remove_taints_for,
            "Deadline")
      << "an hour ahead: counted from its creation";
  EXPECT_EQ(Judge({.now = 69, .ready_since = -5000, .claims = {kWaits}}).remove_taints_for, "")
      << "an hour behind";
}

TEST(NodeCondition, SaysWhatTheNodeWaitsFor) {
  struct Case {
    const char* what;
    Fresh fresh;
    api::NodeCondition condition;
  };
  const Case cases[] = {
      {"warm",
       {.taint = "", .claims = {kWarm}},
       {"True", "Warm", "directories and bundles of all warmups that fit are here"}},
      {"warming", {.taint = "", .claims = {kWarm, kWaits}}, {"False", "Warming", "waits"}},
      {"failed", {.taint = "", .claims = {kFailed}}, {"False", "BundleFailed", "failed"}},
      {"no agent",
       {.taint = "", .agent = false, .claims = {kWaits}},
       {"Unknown", "AgentNotReady", "no agent of cachewarm is ready on this node"}},
      {"a tainted node that nothing fits",
       {.claims = {kNone}},
       {"True", "NothingFits", "no pod of a CacheWarmup can run here"}},
      {"one that has the condition already",
       {.taint = "", .claims = {kNone}, .condition = api::NodeCondition{"True", "Warm", ""}},
       {"True", "NothingFits", "no pod of a CacheWarmup can run here"}},
      {"without any warmup", {.claims = {}}, {"True", "NothingFits", "there is no CacheWarmup"}},
  };
  for (const Case& each : cases) {
    Fresh fresh = each.fresh;
    fresh.wants_condition = true;
    const NodeVerdict verdict = Judge(fresh);
    ASSERT_TRUE(verdict.condition.has_value()) << each.what;
    EXPECT_EQ(*verdict.condition, each.condition) << each.what << ": " << verdict.condition->reason;
  }
}

TEST(NodeCondition, NodesThatAreNoneOfOurBusinessHaveNone) {
  EXPECT_EQ(Judge({.taint = "", .claims = {kNone}, .wants_condition = true}).condition,
            std::nullopt);
  EXPECT_EQ(
      Judge({.taint = "", .agent = false, .claims = {kNone}, .wants_condition = true}).condition,
      std::nullopt);
}

TEST(NodeCondition, IsTakenBackWhenTheSettingIsOff) {
  EXPECT_EQ(
      Judge({.claims = {kWarm}, .condition = api::NodeCondition{"True", "Warm", ""}}).condition,
      std::nullopt);
}

}  // namespace
}  // namespace cachewarm::plan

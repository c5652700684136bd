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
  std::vector<ReadinessState> readiness = {ReadinessState::kNone};
};

NodeDecision Evaluate(const Fresh& fresh) {
  auto node = std::make_shared<api::Node>();
  node->meta.name = "n";
  node->meta.created = At(10);
  node->ready = fresh.ready;
  node->ready_since = fresh.ready ? At(fresh.ready_since) : WallTime{};
  node->taints = {{.key = "team", .effect = "NoSchedule"}};
  if (!fresh.taint.empty()) {
    node->taints.push_back({.key = fresh.taint, .effect = "NoSchedule"});
  }
  auto cache = std::make_shared<api::NodeCache>();
  cache->status.node.cpu_class = fresh.facts ? fakes::kAvx2 : "";
  cache->status.heartbeat = fresh.reported_at == 0 ? WallTime{} : At(fresh.reported_at);
  return EvaluateNode({.now = At(fresh.now),
                       .view = {.node = node, .cache = cache, .agent_ready = fresh.agent},
                       .readiness = fresh.readiness});
}

constexpr ReadinessState kWarm = ReadinessState::kWarm;
constexpr ReadinessState kNone = ReadinessState::kNone;
constexpr ReadinessState kWarming = ReadinessState::kWarming;
constexpr ReadinessState kFailed = ReadinessState::kFailed;

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

}  // namespace
}  // namespace cachewarm::plan

// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/held_pods.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "lib/api/reasons.h"
#include "lib/base/fan_out.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/runtime/work_queue.h"
#include "operator/apply/executor.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/hanging_client.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::controllers {
namespace {

using op::testing::HeldPodObject;
using op::testing::PodObject;
using op::testing::WarmupObject;
using std::chrono::seconds;

api::Pod HeldPod(WallTime created) {
  api::Pod pod;
  pod.meta.created = created;
  pod.gates = {std::string(api::kSchedulingGate)};
  return pod;
}

api::CacheWarmup Injecting() {
  api::CacheWarmup warmup{.name = "llama"};
  warmup.labels[std::string(api::kInjectLabel)] = "true";
  warmup.spec.gate.max_hold_seconds = 60;
  return warmup;
}

TEST(EvaluateHeldPod, ReleasesForEachReason) {
  const WallTime created{seconds(1'000'000)};
  struct Case {
    const char* name;
    std::function<void(api::CacheWarmup&)> change;
    seconds age;
    std::string_view reason;
    std::optional<Duration> wait;
  };
  const std::vector<Case> cases = {
      {"young", [](api::CacheWarmup&) {}, seconds(10), "", seconds(51)},
      {"just before the deadline", [](api::CacheWarmup&) {}, seconds(60), "", seconds(1)},
      {"past the deadline", [](api::CacheWarmup&) {}, seconds(61), api::reason::kReleasedAtDeadline,
       std::nullopt},
      {"paused", [](api::CacheWarmup& w) { w.spec.paused = true; }, seconds(1),
       api::reason::kReleasedHoldingDisabled, std::nullopt},
      {"being deleted", [](api::CacheWarmup& w) { w.deleting = true; }, seconds(1),
       api::reason::kReleasedHoldingDisabled, std::nullopt},
      {"withdrawn", [](api::CacheWarmup& w) { w.labels.clear(); }, seconds(2),
       api::reason::kReleasedHoldingDisabled, std::nullopt},
      {"label not seen yet", [](api::CacheWarmup& w) { w.labels.clear(); }, seconds(1), "",
       seconds(1)},
      {"gate off", [](api::CacheWarmup& w) { w.spec.gate.mode = api::GateMode::kNever; },
       seconds(1), api::reason::kReleasedHoldingDisabled, std::nullopt},
  };
  for (const Case& test : cases) {
    api::CacheWarmup warmup = Injecting();
    test.change(warmup);
    const HeldDecision decision =
        EvaluateHeldPod(HeldPod(created), &warmup, created + test.age, created + seconds(61));
    EXPECT_EQ(decision.reason, test.reason) << test.name;
    EXPECT_EQ(decision.wait, test.wait) << test.name;
  }
}

TEST(EvaluateHeldPod, UnknownWarmupMayBeNewerThanTheStore) {
  const WallTime created{seconds(1'000'000)};
  EXPECT_EQ(EvaluateHeldPod(HeldPod(created), nullptr, created + seconds(1), created).wait,
            Duration(seconds(1)));
  EXPECT_EQ(EvaluateHeldPod(HeldPod(created), nullptr, created + seconds(2), created).reason,
            api::reason::kReleasedHoldingDisabled);
}

class HeldPodsTest : public op::testing::ClusterCacheFixture {
 protected:
  HeldPodsTest() : held_(cluster, {client(), clock, events, metrics, log, refusals_}) {
    held_.SetLeading(true);
  }

  bool IsHeld(const std::string& name) {
    const kube::Object pod = server.Find(kube::kPods, {"default", name});
    const codec::Json* gates = codec::At(*pod, {"spec", "schedulingGates"});
    return gates != nullptr && !gates->empty();
  }

  apply::ReleaseRefusals refusals_{clock, [](const std::string&) {}};
  HeldPods held_;
};

TEST_F(HeldPodsTest, SweepReleasesOnlyDuePods) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  codec::Json paused = WarmupObject("paused");
  paused["spec"]["paused"] = true;
  server.Put(kube::kCacheWarmups, paused);
  server.Put(kube::kPods, HeldPodObject("young", "llama"));
  codec::Json old = HeldPodObject("old", "llama");
  old["metadata"]["creationTimestamp"] = "2025-12-31T23:00:00Z";
  server.Put(kube::kPods, old);
  server.Put(kube::kPods, HeldPodObject("of-paused", "paused"));
  codec::Json orphan = HeldPodObject("orphan", "no-such-warmup");
  orphan["metadata"]["creationTimestamp"] = "2025-12-31T23:00:00Z";
  server.Put(kube::kPods, orphan);
  server.Put(kube::kPods, PodObject("free"));
  StartCache();
  held_.Sweep({});
  EXPECT_TRUE(IsHeld("young"));
  EXPECT_FALSE(IsHeld("old"));
  EXPECT_FALSE(IsHeld("of-paused"));
  EXPECT_FALSE(IsHeld("orphan"));
  EXPECT_EQ(events.Count("ReleasedAtDeadline"), 1);
  EXPECT_EQ(events.Count("ReleasedHoldingDisabled"), 2);
  EXPECT_EQ(Metric("cachewarm_gate_releases_total{namespace=\"default\",warmup=\"paused\","
                   "reason=\"ReleasedHoldingDisabled\"}"),
            1);
  EXPECT_EQ(Metric("cachewarm_gate_releases_total{namespace=\"default\",warmup=\"\","
                   "reason=\"ReleasedHoldingDisabled\"}"),
            1)
      << "users may name a warmup that does not exist";
}

TEST_F(HeldPodsTest, UndecodablePodIsReleased) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  codec::Json strange = HeldPodObject("strange", "llama");
  strange["metadata"]["creationTimestamp"] = "2025-12-31T23:00:00Z";
  for (int i = 0; i < 4'097; ++i) {
    strange["metadata"]["labels"][fmt::format("l{}", i)] = "";
  }
  server.Put(kube::kPods, strange);
  StartCache();
  const auto outcome = held_.Reconcile("default/strange", {});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_FALSE(IsHeld("strange"));
  EXPECT_EQ(events.Count("ReleasedHoldingDisabled"), 1);
}

TEST_F(HeldPodsTest, ReleaseNeedsNoAnnotation) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  codec::Json full = HeldPodObject("full", "llama");
  full["metadata"]["creationTimestamp"] = "2025-12-31T23:00:00Z";
  server.Put(kube::kPods, full);
  server.OnWrite([](const kube::Request&, codec::Json& pod) {
    return kube::AnnotationsOf(pod).contains("cachewarm.io/released")
               ? absl::InvalidArgumentError("annotations are too long")
               : absl::OkStatus();
  });
  StartCache();
  const auto outcome = held_.Reconcile("default/full", {});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_FALSE(IsHeld("full"));
}

TEST_F(HeldPodsTest, OtherGatesAreKept) {
  codec::Json pod = HeldPodObject("a", "gone");
  pod["metadata"]["creationTimestamp"] = "2025-12-31T23:00:00Z";
  pod["spec"]["schedulingGates"] = {{{"name", "kueue.x-k8s.io/admission"}},
                                    {{"name", std::string(api::kSchedulingGate)}}};
  server.Put(kube::kPods, pod);
  StartCache();
  const auto outcome = held_.Reconcile("default/a", {});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  const kube::Object after = server.Find(kube::kPods, {"default", "a"});
  EXPECT_EQ((*after)["spec"]["schedulingGates"].size(), 1U);
  EXPECT_EQ((*after)["spec"]["schedulingGates"][0]["name"], "kueue.x-k8s.io/admission");
}

TEST_F(HeldPodsTest, RequeuesAtTheDeadline) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kPods, HeldPodObject("a", "llama"));
  StartCache();
  const auto outcome = held_.Reconcile("default/a", {});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  ASSERT_TRUE(outcome->requeue_after.has_value());
  EXPECT_EQ(*outcome->requeue_after, Duration(61'500));
  clock.Advance(*outcome->requeue_after);
  ASSERT_TRUE(held_.Reconcile("default/a", {}).ok());
  EXPECT_FALSE(IsHeld("a"));
  EXPECT_EQ(Metric("cachewarm_gate_releases_total{namespace=\"default\",warmup=\"llama\","
                   "reason=\"ReleasedAtDeadline\"}"),
            1);
}

TEST_F(HeldPodsTest, StandbyReleasesPodsPastDeadline) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kPods, HeldPodObject("a", "llama"));
  StartCache();
  held_.SetLeading(false);
  const auto outcome = held_.Reconcile("default/a", {});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->requeue_after, Duration(63'000));
  clock.Advance(Duration(62'999));
  ASSERT_TRUE(held_.Reconcile("default/a", {}).ok());
  EXPECT_TRUE(IsHeld("a")) << "the leader releases first";
  clock.Advance(Duration(1));
  ASSERT_TRUE(held_.Reconcile("default/a", {}).ok());
  EXPECT_FALSE(IsHeld("a"));
  EXPECT_EQ(Metric("cachewarm_gate_releases_total{namespace=\"default\",warmup=\"llama\","
                   "reason=\"ReleasedAtDeadline\"}"),
            1);
}

TEST_F(HeldPodsTest, StandbyLeavesOtherPodsToTheLeader) {
  codec::Json paused = WarmupObject("paused");
  paused["spec"]["paused"] = true;
  server.Put(kube::kCacheWarmups, paused);
  server.Put(kube::kPods, HeldPodObject("of-paused", "paused"));
  StartCache();
  held_.SetLeading(false);
  ASSERT_TRUE(held_.Reconcile("default/of-paused", {}).ok());
  EXPECT_TRUE(IsHeld("of-paused"));
}

TEST_F(HeldPodsTest, UnsyncedWarmupStoreFallsBackToPodAnnotations) {
  codec::Json noted = HeldPodObject("noted", "llama");
  noted["metadata"]["annotations"][std::string(api::kHeldUntilAnnotation)] =
      FormatTime(clock.Now() + seconds(20));
  server.Put(kube::kPods, noted);
  server.Put(kube::kPods, HeldPodObject("unnoted", "llama"));
  server.Intercept([](const kube::Request& request) {
    return request.resource == kube::kCacheWarmups.plural ? absl::PermissionDeniedError("no")
                                                          : absl::OkStatus();
  });
  cluster.Start(stop.get_token());
  ASSERT_TRUE(op::testing::Eventually([&] { return cluster.pods.store().HasSynced(); }));
  EXPECT_EQ(held_.Reconcile("default/noted", {})->requeue_after, Duration(23'000));
  EXPECT_EQ(held_.Reconcile("default/unnoted", {})->requeue_after, Duration(63'000));
  clock.Advance(Duration(23'000));
  held_.Sweep({});
  EXPECT_FALSE(IsHeld("noted"));
  EXPECT_TRUE(IsHeld("unnoted"));
}

TEST_F(HeldPodsTest, BudgetCountsPerRollout) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kPods, HeldPodObject("first", "llama"));
  codec::Json second = HeldPodObject("second", "llama");
  second["metadata"]["creationTimestamp"] = FormatTime(clock.Now() + seconds(30));
  server.Put(kube::kPods, second);
  StartCache();
  clock.Advance(seconds(62));
  ASSERT_TRUE(held_.Reconcile("default/second", {}).ok());
  EXPECT_FALSE(IsHeld("second")) << "62 s after the first, 32 s after its own creation";
}

// An undecodable pod is logged on every read, which counts the reads.
TEST_F(HeldPodsTest, BurstReadsPodsOnce) {
  constexpr int kPods = 100;
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  codec::Json odd = HeldPodObject("odd", "llama");
  odd["status"]["phase"] = 5;
  server.Put(kube::kPods, odd);
  for (int i = 0; i < kPods; ++i) {
    server.Put(kube::kPods, HeldPodObject(fmt::format("p{}", i), "llama"));
  }
  StartCache();
  FanOut(kPods, kHeldLanes.usual, {},
         [&](size_t i) { EXPECT_TRUE(held_.Reconcile(fmt::format("default/p{}", i), {}).ok()); });
  EXPECT_EQ(log.Count("cannot decode object"), 1);
}

TEST_F(HeldPodsTest, LoweredMaxHoldAppliesAtOnce) {
  codec::Json warmup = WarmupObject("llama");
  server.Put(kube::kCacheWarmups, warmup);
  server.Put(kube::kPods, HeldPodObject("a", "llama"));
  StartCache();
  EXPECT_EQ(held_.Reconcile("default/a", {})->requeue_after, Duration(61'500));
  warmup["spec"]["gate"] = {{"maxHoldSeconds", 10}};
  server.Put(kube::kCacheWarmups, warmup);
  EXPECT_TRUE(op::testing::Eventually(
      [&] { return held_.Reconcile("default/a", {})->requeue_after == Duration(11'500); }));
}

TEST_F(HeldPodsTest, SelectedDeploymentKeepsItsProgressDeadline) {
  codec::Json warmup = WarmupObject("llama");
  warmup["spec"] = {{"selector", {{"matchLabels", {{"app", "llama"}}}}}};
  server.Put(kube::kCacheWarmups, warmup);
  codec::Json deployment = op::testing::DeploymentObject("any");
  deployment["spec"]["progressDeadlineSeconds"] = 30;
  server.Put(kube::kDeployments, deployment);
  server.Put(kube::kPods, HeldPodObject("a", "llama"));
  StartCache();
  EXPECT_EQ(held_.Reconcile("default/a", {})->requeue_after, Duration(16'500))
      << "half of the hold";
}

TEST_F(HeldPodsTest, RemovedGateIsNoError) {
  codec::Json pod = HeldPodObject("a", "gone");
  pod["metadata"]["creationTimestamp"] = "2025-12-31T23:00:00Z";
  server.Put(kube::kPods, pod);
  StartCache();
  StopCache();  // keeps the store stale
  server.Edit(kube::kPods, {"default", "a"},
              [](codec::Json& edited) { edited["spec"].erase("schedulingGates"); });
  EXPECT_TRUE(held_.Reconcile("default/a", {}).ok());
  EXPECT_EQ(events.Count("ReleasedHoldingDisabled"), 0);
  server.Remove(kube::kPods, {"default", "a"});
  EXPECT_TRUE(held_.Reconcile("default/a", {}).ok());
}

TEST_F(HeldPodsTest, ServerErrorIsReturned) {
  codec::Json pod = HeldPodObject("a", "gone");
  pod["metadata"]["creationTimestamp"] = "2025-12-31T23:00:00Z";
  server.Put(kube::kPods, pod);
  StartCache();
  server.Intercept([](const kube::Request& request) {
    return request.verb == "patch" ? absl::UnavailableError("down") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(held_.Reconcile("default/a", {}).status()));
  EXPECT_TRUE(IsHeld("a"));
}

// 60 overdue pods in a namespace where no pod can be patched, and one elsewhere.
class HangingPodsTest : public op::testing::ClusterCacheFixture {
 protected:
  HangingPodsTest()
      : hanging(server, "a-team"), held(cluster, {hanging, clock, events, metrics, log, refusals}) {
    held.SetLeading(true);
    for (int i = 0; i < 60; ++i) {
      Put("a-team", fmt::format("p{}", i));
    }
    Put("default", "free");
  }

  // Afterwards no other thread waits for the clock.
  void StartAndStopWorld() {
    StartCache();
    StopCache();
  }

  void Put(const std::string& ns, const std::string& name) {
    codec::Json pod = HeldPodObject(name, "gone");
    pod["metadata"]["namespace"] = ns;
    pod["metadata"]["creationTimestamp"] = "2025-12-31T23:00:00Z";
    server.Put(kube::kPods, pod);
  }

  bool IsHeld(const std::string& ns, const std::string& name) {
    return observe::IsHeldAtGate(*server.Find(kube::kPods, {ns, name}));
  }

  absl::Status Reconcile(const std::string& key) { return held.Reconcile(key, {}).status(); }
  std::future<absl::Status> StartReconcile(const std::string& key) {
    return std::async(std::launch::async, [this, key] { return Reconcile(key); });
  }

  op::testing::HangingClient hanging;
  apply::ReleaseRefusals refusals{clock, [](const std::string&) {}};
  HeldPods held;
};

TEST_F(HangingPodsTest, NewLeaderDoesNotWaitForThem) {
  StartAndStopWorld();
  auto sweeping = std::async(std::launch::async, [this] { held.Sweep({}); });
  ASSERT_TRUE(op::testing::Eventually([&] { return hanging.under_way() == 16; }));
  ASSERT_TRUE(clock.AwaitWaiters(17));
  clock.Advance(seconds(3));
  EXPECT_TRUE(op::testing::Eventually([&] { return !IsHeld("default", "free"); }));
  EXPECT_TRUE(op::testing::Eventually([&] { return log.Count("not patched within 3s") == 16; }));
  clock.Advance(seconds(2));
  EXPECT_EQ(sweeping.wait_for(seconds(20)), std::future_status::ready);
  hanging.Answer();
  EXPECT_LT(hanging.tries(), 40);
}

TEST_F(HangingPodsTest, PatchMayTakeAsLongAsAWebhook) {
  StartAndStopWorld();
  std::future<absl::Status> first = StartReconcile("a-team/p0");
  ASSERT_TRUE(op::testing::Eventually([&] { return hanging.under_way() == 1; }));
  ASSERT_TRUE(clock.AwaitWaiters(1));
  clock.Advance(seconds(30) - Duration(1));
  EXPECT_EQ(first.wait_for(seconds(0)), std::future_status::timeout);
  clock.Advance(Duration(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(first.get()));
  std::future<absl::Status> second = StartReconcile("a-team/p0");
  ASSERT_TRUE(op::testing::Eventually([&] { return hanging.under_way() == 1; }));
  ASSERT_TRUE(clock.AwaitWaiters(1));
  clock.Advance(seconds(10));
  hanging.Answer();
  EXPECT_TRUE(second.get().ok());
  EXPECT_FALSE(IsHeld("a-team", "p0"));
}

// With the threads and lanes of the daemon.
TEST_F(HangingPodsTest, TwoHundredPodsOfOneNamespaceDelayNoOther) {
  constexpr int kPods = 200;
  const int usual = static_cast<int>(kHeldLanes.usual);
  const int share = static_cast<int>(kHeldLanes.slow - kHeldLanes.slow / 4);
  for (int i = 60; i < kPods; ++i) {
    Put("a-team", fmt::format("p{}", i));
  }
  StartAndStopWorld();
  kube::WorkQueue queue(clock, {}, kHeldLanes);
  std::stop_source ended;
  std::jthread controller([&] {
    kube::Controller(queue, clock, log,
                     {.name = "held", .workers = static_cast<int>(kHeldLanes.slow) + usual},
                     [this](const std::string& key, std::stop_token stopping) {
                       return held.Reconcile(key, std::move(stopping));
                     })
        .Run(ended.get_token());
  });
  for (int i = 0; i < kPods; ++i) {
    queue.Add(fmt::format("a-team/p{}", i));
  }
  ASSERT_TRUE(op::testing::Eventually([&] { return hanging.under_way() == usual; }));
  clock.Advance(kube::NamespaceLanes::kSlowAfter);
  ASSERT_TRUE(op::testing::Eventually([&] { return hanging.under_way() == share; }));
  queue.Add("default/free");
  EXPECT_TRUE(op::testing::Eventually([&] { return !IsHeld("default", "free"); }));
  EXPECT_EQ(hanging.under_way(), share);
  hanging.Answer();
  EXPECT_TRUE(op::testing::Eventually(
      [&] { return !IsHeld("a-team", "p0") && !IsHeld("a-team", fmt::format("p{}", kPods - 1)); }));
  ended.request_stop();
}

TEST_F(HeldPodsTest, PodWithImmutableAffinityIsReleasedAtDeadline) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kPods, HeldPodObject("a", "llama"));
  StartCache();
  server.OnWrite([](const kube::Request&, codec::Json& object) {
    return codec::At(object, {"spec", "affinity"}) == nullptr ? absl::OkStatus()
                                                              : absl::InvalidArgumentError("no");
  });
  const auto pod = cluster.pod_views.Get({"default", "a"});
  ASSERT_NE(pod, nullptr);
  gate::SlowNamespaceLimiter turns(clock, {.at_once = 1, .limit = Duration(3'000)});
  EXPECT_FALSE(apply::ReleaseGate({.client = client(), .turns = turns, .refusals = refusals_},
                                  {.pod = pod, .reason = "ReleasedWarm", .excluded = {"n9"}}, {})
                   .ok());
  EXPECT_TRUE(IsHeld("a")) << "the plan excludes a node";
  clock.Advance(Duration(61'500));
  ASSERT_TRUE(held_.Reconcile("default/a", {}).ok());
  EXPECT_FALSE(IsHeld("a"));
}

TEST_F(HeldPodsTest, UnknownAndMalformedKeysAreIgnored) {
  StartCache();
  EXPECT_TRUE(held_.Reconcile("default/none", {}).ok());
  EXPECT_FALSE(held_.Reconcile("a/b/c", {}).ok());
}

}  // namespace
}  // namespace cachewarm::controllers

// SPDX-License-Identifier: Apache-2.0
#include "operator/daemon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "lib/codec/json_path.h"
#include "lib/process/process.h"
#include "operator/webhook/registration.h"
#include "operator/webhook/service.h"
#include "tests/fakes/crds.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/hanging_client.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::op {
namespace {

using std::chrono::seconds;
using testing::Eventually;
using testing::HeldPodObject;
using testing::NodeObject;
using testing::SeriesValue;
using testing::WarmupObject;

constexpr int kStepsMax = 30;

// The whole operator over an in-process API server. Only the test advances the clock.
class DaemonTest : public ::testing::Test {
 protected:
  DaemonTest()
      : server_(clock_),
        registry_(metrics::MakeRegistry()),
        metrics_(MakeMetrics(*registry_, "test")) {
    fakes::PutCrds(server_);
    config_.listen_address = "127.0.0.1";
    config_.listen_port = 0;
    config_.identity = "operator-a";
  }
  ~DaemonTest() override {
    stop_.request_stop();
    if (running_.valid()) {
      // The end of a replica that serves the webhook takes some seconds.
      EXPECT_TRUE(InSteps(seconds(3), [&] { return HasEnded(); }));
      EXPECT_TRUE(running_.get().ok());
    }
  }

  void Start() {
    daemon_ = std::make_unique<Daemon>(config_, DaemonDependencies{.client = hanging_,
                                                                   .clock = clock_,
                                                                   .random = [] { return 0.5; },
                                                                   .log = log_,
                                                                   .registry = *registry_,
                                                                   .metrics = metrics_});
    running_ = std::async(std::launch::async, [this] { return daemon_->Run(stop_.get_token()); });
  }

  void RefuseToList(const kube::Resource& resource) {
    server_.Intercept([refused = std::string(resource.plural)](const kube::Request& request) {
      return request.verb == "list" && request.resource == refused
                 ? absl::PermissionDeniedError(refused + " is forbidden")
                 : absl::OkStatus();
    });
  }

  // Waits for `condition` and advances the clock by `step` whenever nothing happens for a second,
  // so that no thread misses a Lease renewal.
  bool InSteps(Duration step, const std::function<bool()>& condition) {
    for (int i = 0; i < kStepsMax; ++i) {
      if (Eventually(condition, seconds(1))) {
        return true;
      }
      clock_.Advance(step);
    }
    return false;
  }

  bool HasEnded() const { return running_.wait_for(seconds(0)) == std::future_status::ready; }

  bool Leads() const { return SeriesValue(registry_->Serialize(), "cachewarm_leader") == 1; }

  // Returns true if this replica neither leads nor is ready for the next 40 s.
  bool Waits() {
    for (int i = 0; i < 4; ++i) {
      clock_.Advance(seconds(10));
      if (Eventually([&] { return Leads() || daemon_->IsReady(); }, seconds(1))) {
        return false;
      }
    }
    return true;
  }

  bool IsHeld(const std::string& name) const {
    const kube::Object pod = server_.Find(kube::kPods, {"default", name});
    const codec::Json* gates = codec::At(*pod, {"spec", "schedulingGates"});
    return gates != nullptr && !gates->empty();
  }

  // Writing requests except those of the leader election.
  std::vector<std::string> Writes() const {
    std::vector<std::string> requests = server_.Requests();
    std::erase_if(requests, [](const std::string& request) {
      return request.starts_with("list") || request.starts_with("watch") ||
             request.starts_with("get") || request.find(" leases ") != std::string::npos;
    });
    return requests;
  }

  // Held pods of a deleted warmup.
  void PutOrphans(const std::string& ns, int count) {
    for (int i = 0; i < count; ++i) {
      codec::Json pod = HeldPodObject("orphan" + std::to_string(i), "gone");
      pod["metadata"]["namespace"] = ns;
      pod["metadata"]["creationTimestamp"] = "2025-12-31T23:00:00Z";
      server_.Put(kube::kPods, pod);
    }
  }

  // Another replica holds the Lease for 15 s.
  void LeadElsewhere() {
    server_.Put(kube::kLeases,
                {{"metadata", {{"name", "cachewarm-operator"}, {"namespace", config_.ns}}},
                 {"spec",
                  {{"holderIdentity", "operator-b"},
                   {"leaseDurationSeconds", 15},
                   {"renewTime", FormatMicroTime(clock_.Now())}}}});
  }

  // A warmup with an hour of maxHoldSeconds and two of its pods with annotated deadlines.
  void PutPodsThatNoteTheirDeadlines() {
    codec::Json warmup = WarmupObject("llama");
    warmup["spec"]["gate"]["maxHoldSeconds"] = 3600;
    server_.Put(kube::kCacheWarmups, warmup);
    codec::Json overdue = HeldPodObject("overdue", "llama");
    overdue["metadata"]["creationTimestamp"] = "2025-12-31T23:58:00Z";
    overdue["metadata"]["annotations"][api::kHeldUntilAnnotation] = "2025-12-31T23:59:00Z";
    server_.Put(kube::kPods, overdue);
    codec::Json waits = HeldPodObject("waits", "llama");
    waits["metadata"]["annotations"][api::kHeldUntilAnnotation] = "2026-01-01T00:50:00Z";
    server_.Put(kube::kPods, waits);
  }

  fakes::FakeClock clock_;
  fakes::FakeApiServer server_;
  testing::HangingClient hanging_{server_, "team"};
  fakes::MemoryLog log_;
  std::unique_ptr<metrics::Registry> registry_;
  Metrics metrics_;
  Config config_;
  std::unique_ptr<Daemon> daemon_;
  std::stop_source stop_;
  std::future<absl::Status> running_;
};

class ForbiddenKind : public DaemonTest, public ::testing::WithParamInterface<kube::Resource> {};

TEST_P(ForbiddenKind, PodsAreReleasedAndAReplicaLeads) {
  PutPodsThatNoteTheirDeadlines();
  server_.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  RefuseToList(GetParam());
  Start();
  EXPECT_TRUE(InSteps(seconds(2), [&] { return !IsHeld("overdue"); }));
  EXPECT_TRUE(InSteps(seconds(15), [&] { return Leads(); }));
  EXPECT_TRUE(IsHeld("waits"));
  EXPECT_FALSE(daemon_->IsReady());
  EXPECT_TRUE(server_.All(kube::kNodeCaches).empty()) << "planned before all stores synced";
}

INSTANTIATE_TEST_SUITE_P(Kinds, ForbiddenKind,
                         ::testing::Values(kube::kCacheWarmups, kube::kNodes, kube::kCronJobs,
                                           kube::kPodDisruptionBudgets, kube::kEvents),
                         [](const auto& kind) { return std::string(kind.param.kind); });

TEST_F(DaemonTest, PlansOnceTheKindCanBeListed) {
  config_.leader_elect = false;  // so that the clock can be advanced freely
  PutPodsThatNoteTheirDeadlines();
  server_.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  RefuseToList(kube::kPodDisruptionBudgets);
  Start();
  ASSERT_TRUE(Eventually(
      [&] { return !IsHeld("overdue") && log_.Has("poddisruptionbudgets is forbidden"); }));
  EXPECT_TRUE(server_.All(kube::kNodeCaches).empty());
  server_.Intercept(nullptr);
  EXPECT_TRUE(InSteps(seconds(5), [&] { return !server_.All(kube::kNodeCaches).empty(); }));
  EXPECT_TRUE(daemon_->IsReady());
}

TEST_F(DaemonTest, NewLeaderReleasesHeldPodsFirst) {
  codec::Json paused = WarmupObject("paused");
  paused["spec"]["paused"] = true;
  server_.Put(kube::kCacheWarmups, paused);
  server_.Put(kube::kPods, HeldPodObject("of-paused", "paused"));
  server_.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  Start();
  ASSERT_TRUE(Eventually([&] { return !server_.All(kube::kNodeCaches).empty(); }));
  EXPECT_FALSE(IsHeld("of-paused"));
  EXPECT_EQ(Writes().front(), "patch pods default/of-paused");
}

TEST_F(DaemonTest, UnpatchablePodsBlockNoOtherNamespace) {
  config_.leader_elect = false;
  PutOrphans("team", 60);
  Start();
  ASSERT_TRUE(Eventually([&] { return hanging_.under_way() > 0; }));
  PutOrphans("default", 1);
  server_.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  EXPECT_TRUE(InSteps(seconds(1), [&] { return !IsHeld("orphan0"); }));
  EXPECT_TRUE(InSteps(seconds(1), [&] { return !server_.All(kube::kNodeCaches).empty(); }))
      << "a new leader does not wait for hanging pods";
  hanging_.Answer();
  const auto all_are_free = [&] {
    const std::vector<kube::Object> pods = server_.All(kube::kPods);
    return std::none_of(pods.begin(), pods.end(),
                        [](const kube::Object& pod) { return observe::IsHeldAtGate(*pod); });
  };
  EXPECT_TRUE(InSteps(seconds(2), all_are_free)) << "each is retried";
}

TEST_F(DaemonTest, WarmupsWhoseStatusCannotBeWrittenDelayNoOtherPlan) {
  config_.leader_elect = false;
  hanging_.HangAllWrites();
  for (int i = 0; i < 30; ++i) {
    codec::Json warmup = WarmupObject("w" + std::to_string(i));
    warmup["metadata"]["namespace"] = "team";
    server_.Put(kube::kCacheWarmups, warmup);
  }
  Start();
  ASSERT_TRUE(Eventually([&] { return hanging_.under_way() >= config_.workers; }));
  server_.Put(kube::kCacheWarmups, WarmupObject("llama"));
  EXPECT_TRUE(InSteps(Duration(500), [&] {
    return server_.Find(kube::kCacheWarmups, {"default", "llama"})->contains("status");
  }));
  EXPECT_GE(hanging_.under_way(), config_.workers) << "they still wait";
}

TEST_F(DaemonTest, NewLeaderReconcilesOnlyPresentObjects) {
  constexpr int kGone = 50;
  LeadElsewhere();
  server_.Put(kube::kNamespaces, testing::NamespaceObject("default"));
  server_.Put(kube::kCacheWarmups, WarmupObject("last"));
  codec::Json of_the_last = HeldPodObject("of-the-last", "last");
  of_the_last["metadata"]["creationTimestamp"] = "2025-12-31T23:59:50Z";
  server_.Put(kube::kPods, of_the_last);
  Start();
  ASSERT_TRUE(Eventually([&] { return daemon_->IsReady(); }));
  for (int i = 0; i < kGone; ++i) {
    server_.Put(kube::kCacheWarmups, WarmupObject("w" + std::to_string(i)));
    server_.Remove(kube::kCacheWarmups, {"default", "w" + std::to_string(i)});
  }
  server_.Remove(kube::kCacheWarmups, {"default", "last"});
  ASSERT_TRUE(Eventually([&] { return !IsHeld("of-the-last"); })) << "the store has every pod";
  EXPECT_FALSE(Leads());
  ASSERT_TRUE(InSteps(seconds(8), [&] { return Leads(); }));
  // Queued behind all earlier keys.
  server_.Put(kube::kCacheWarmups, WarmupObject("llama"));
  ASSERT_TRUE(InSteps(seconds(1), [&] {
    return server_.Find(kube::kCacheWarmups, {"default", "llama"})->contains("status");
  }));
  EXPECT_LT(SeriesValue(registry_->Serialize(),
                        "cachewarm_reconciles_total{controller=\"warmups\",result=\"success\"}"),
            kGone / 2);
}

// The whole operator with an older CRD.
class DaemonWithOlderCrd : public DaemonTest, public ::testing::WithParamInterface<bool> {
 protected:
  DaemonWithOlderCrd() {
    config_.leader_elect = GetParam();
    fakes::MakeWarmupCrdOlder(server_);
    PutPodsThatNoteTheirDeadlines();
    server_.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  }
};

TEST_P(DaemonWithOlderCrd, NeitherLeadsNorIsReadyButReleasesOverduePods) {
  Start();
  ASSERT_TRUE(InSteps(seconds(2), [&] { return !IsHeld("overdue"); }));
  EXPECT_TRUE(Waits());
  EXPECT_EQ(daemon_->WhyNotReady(),
            "CustomResourceDefinition cachewarmups.cachewarm.io is older than this operator: "
            "version v1alpha1 has no field status.starts; run kubectl apply --server-side -f crds/ "
            "with the files of this release\n");
  EXPECT_TRUE(server_.All(kube::kLeases).empty());
  EXPECT_TRUE(server_.All(kube::kNodeCaches).empty());
  EXPECT_TRUE(IsHeld("waits"));
}

TEST_P(DaemonWithOlderCrd, LeadsAndIsReadyOnceTheCrdIsUpdated) {
  Start();
  ASSERT_TRUE(Eventually([&] { return log_.Has("has no field status.starts"); }));
  fakes::PutCrds(server_);
  EXPECT_TRUE(InSteps(seconds(2), [&] { return Leads() && daemon_->IsReady(); }));
}

INSTANTIATE_TEST_SUITE_P(LeaderElection, DaemonWithOlderCrd, ::testing::Bool());

TEST_F(DaemonTest, OlderCrdLeavesTheLeaseToAnotherReplica) {
  fakes::MakeWarmupCrdOlder(server_);
  LeadElsewhere();
  Start();
  ASSERT_TRUE(Eventually([&] { return log_.Has("has no field status.starts"); }));
  EXPECT_TRUE(Waits()) << "although the Lease has expired";
  EXPECT_EQ(codec::TextAt(*server_.All(kube::kLeases).front(), {"spec", "holderIdentity"}),
            "operator-b");
}

class DaemonWithWebhook : public DaemonTest {
 protected:
  DaemonWithWebhook() {
    config_.webhook_address = "127.0.0.1";
    config_.webhook_port = 0;
    server_.Serve(kube::kMutatingPolicies, false);
    PutWebhook();
  }

  // Without a caBundle.
  void PutWebhook() {
    server_.Put(
        kube::kMutatingWebhooks,
        {{"metadata", {{"name", std::string(webhook::kAdmissionName)}}},
         {"webhooks", codec::Json::array({{{"clientConfig", {{"service", {{"name", "x"}}}}}}})}});
  }

  bool HasCaBundle() const {
    const codec::Json webhook =
        server_.Find(kube::kMutatingWebhooks, {"", std::string(webhook::kAdmissionName)})
            ->at("webhooks")[0];
    return !codec::TextAt(webhook, {"clientConfig", "caBundle"}).empty();
  }

  // Advances the clock in steps, so that this replica renews its Lease.
  void LeadFor(Duration time) {
    const auto renewed = [this] {
      return codec::TextAt(*server_.All(kube::kLeases).front(), {"spec", "renewTime"});
    };
    const MonoTime end = clock_.Monotonic() + time;
    while (clock_.Monotonic() < end) {
      const std::string before = renewed();
      clock_.Advance(seconds(2));
      // A renewal that misses this step comes with the next one.
      Eventually([&] { return renewed() != before; }, seconds(1));
    }
  }

  void PutSecret() {
    server_.Put(kube::kSecrets,
                {{"metadata", {{"name", "cachewarm-webhook"}, {"namespace", config_.ns}}}});
  }
};

TEST_F(DaemonWithWebhook, DaemonIsNotReadyBeforeServing) {
  Start();
  ASSERT_TRUE(InSteps(seconds(1), [&] {
    return Leads() && log_.Has("for the webhook certificates does not exist");
  }));
  EXPECT_EQ(daemon_->WhyNotReady(), "admission configuration not checked yet\n");
  PutSecret();
  EXPECT_TRUE(InSteps(seconds(2), [&] { return daemon_->IsReady(); }));
}

TEST_F(DaemonWithWebhook, LostLeaseEndsDaemonAfterDraining) {
  PutSecret();
  Start();
  ASSERT_TRUE(InSteps(seconds(1), [&] { return Leads() && daemon_->IsReady(); }));
  LeadElsewhere();
  ASSERT_TRUE(InSteps(seconds(2), [&] { return !Leads(); }));
  EXPECT_TRUE(Eventually([&] { return daemon_->WhyNotReady() == "stopping\n"; }));
  clock_.Advance(seconds(15));
  EXPECT_FALSE(HasEnded()) << "kubelet may not have probed three times";
  EXPECT_FALSE(log_.Has("webhook stopped"));
  ASSERT_TRUE(InSteps(seconds(2), [&] { return HasEnded(); }));
  EXPECT_TRUE(absl::IsAborted(running_.get()));
}

TEST_F(DaemonWithWebhook, ReplicaThatLostItsLeaseLeavesTheCaBundleToTheNextLeader) {
  PutSecret();
  Start();
  ASSERT_TRUE(InSteps(seconds(1), [&] { return Leads() && daemon_->IsReady(); }));
  EXPECT_TRUE(HasCaBundle());
  // The configuration is checked every 30 s: the next time while the replica drains.
  LeadFor(seconds(18));
  LeadElsewhere();
  ASSERT_TRUE(InSteps(seconds(2), [&] { return !Leads(); }));
  PutWebhook();
  clock_.Advance(seconds(14));
  EXPECT_FALSE(Eventually([&] { return HasCaBundle(); }, seconds(1)));
  EXPECT_FALSE(HasEnded());
  ASSERT_TRUE(InSteps(seconds(3), [&] { return HasEnded(); }));
  EXPECT_TRUE(absl::IsAborted(running_.get()));
}

TEST_F(DaemonWithWebhook, StopLimitIncludesDrainDelay) {
  Start();
  ASSERT_TRUE(InSteps(seconds(1), [&] {
    return Leads() && log_.Has("for the webhook certificates does not exist");
  }));
  EXPECT_EQ(daemon_->StopLimit(), process::kStopWithin) << "not serving yet";
  PutSecret();
  ASSERT_TRUE(InSteps(seconds(2), [&] { return daemon_->IsReady(); }));
  EXPECT_EQ(daemon_->StopLimit(), process::kStopWithin + webhook::ServiceOptions().drain_delay);
}

}  // namespace
}  // namespace cachewarm::op

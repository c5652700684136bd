// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/warmups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "lib/codec/json_path.h"
#include "lib/fingerprint/key.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::controllers {
namespace {

using op::testing::DeploymentObject;
using op::testing::Eventually;
using op::testing::HeldPodObject;
using op::testing::NamespaceObject;
using op::testing::NodeCacheObject;
using op::testing::NodeObject;
using op::testing::PodObject;
using op::testing::WarmupObject;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class WarmupsTest : public op::testing::ClusterCacheFixture {
 protected:
  WarmupsTest()
      : executor({.client = server,
                  .clock = clock,
                  .events = events,
                  .metrics = metrics,
                  .log = log,
                  .job_refusals = job_refusals,
                  .release_refusals = release_refusals}),
        dry_runs(server, clock),
        dry_run_keys(clock),
        dry_run_queue({.dry_runs = dry_runs,
                       .releases = release_dry_runs,
                       .queue = dry_run_keys,
                       .clock = clock,
                       .on_result =
                           [this](const std::string& warmup, const model::AdmissionDryRun& result) {
                             warmups.CountDryRun(result);
                             woken.push_back(warmup);
                           }}),
        build_requests({.clock = clock,
                        .log = log,
                        .connect = [](const std::string&) { return http::MakeClient({}); },
                        .wake = [](const std::string&) {}}),
        log_reads({.client = server,
                   .clock = clock,
                   .metrics = metrics,
                   .log = log,
                   .queue = log_read_keys,
                   .wake = [](const std::string&) {}}),
        warmups({.cluster = cluster,
                 .executor = executor,
                 .dry_runs = dry_runs,
                 .dry_run_queue = dry_run_queue,
                 .release_dry_runs = release_dry_runs,
                 .build_requests = build_requests,
                 .log_reads = log_reads,
                 .job_refusals = job_refusals,
                 .release_refusals = release_refusals,
                 .clock = clock,
                 .metrics = metrics,
                 .agent_namespace = "cachewarm-system",
                 .factor_salt = [](const std::stop_token&) { return std::string(); },
                 .admission_missing =
                     [this] {
                       std::lock_guard lock(planned_mutex);
                       planned_on.push_back(std::this_thread::get_id());
                       return admission_missing;
                     }}) {
    server.Put(kube::kNamespaces, NamespaceObject("default"));
  }

  // Reconciles the warmup, and then runs the dry runs that were queued.
  absl::StatusOr<kube::Outcome> Reconcile() {
    const auto outcome = warmups.Reconcile("default/llama", {});
    while (dry_run_keys.size() > 0) {
      const auto key = dry_run_keys.Get({});
      EXPECT_TRUE(dry_run_queue.Reconcile(*key, {}).ok());
      dry_run_keys.Done(*key);
    }
    return outcome;
  }

  codec::Json Warmup() { return *server.Find(kube::kCacheWarmups, {"default", "llama"}); }

  std::string ReadyReason() { return ReasonOf("Ready"); }

  std::string ReasonOf(const std::string& condition) {
    const codec::Json warmup = Warmup();
    const codec::Json* conditions = codec::At(warmup, {"status", "conditions"});
    for (size_t i = 0; conditions != nullptr && i < conditions->size(); ++i) {
      if (codec::TextAt((*conditions)[i], {"type"}) == condition) {
        return codec::TextAt((*conditions)[i], {"reason"});
      }
    }
    return "";
  }

  // Waits until the store equals the server.
  bool Seen() {
    return Eventually([&] {
      const kube::Object stored = cluster.warmups.store().Get({"default", "llama"});
      const kube::Object there = server.Find(kube::kCacheWarmups, {"default", "llama"});
      return stored != nullptr &&
             kube::ResourceVersionOf(*stored) == kube::ResourceVersionOf(*there);
    });
  }

  codec::Json SpecOf(const std::string& node) {
    const kube::Object node_cache = server.Find(kube::kNodeCaches, {.name = node});
    return node_cache->value("spec", codec::Json::object());
  }

  // NodeCache n1 with an entry of the warmup llama under `uid`.
  void PutEntryOf(const std::string& uid) {
    server.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
    server.Put(kube::kNodeCaches, NodeCacheObject("n1", "uid-n1"));
    const codec::Json entry = {{"uid", uid}, {"namespace", "default"}, {"name", "llama"}};
    ASSERT_TRUE(server
                    .Do(kube::Apply(kube::kNodeCaches,
                                    {{"metadata", {{"name", "n1"}}},
                                     {"spec", {{"warmups", codec::Json::array({entry})}}}},
                                    {.field_manager = "cw-" + uid}),
                        {})
                    .ok());
  }

  void RefuseNodeCaches() {
    server.OnWrite([](const kube::Request& request, codec::Json&) {
      return request.resource == kube::kNodeCaches.plural
                 ? absl::InvalidArgumentError("spec.warmups: too many: 65")
                 : absl::OkStatus();
    });
  }

  std::string admission_missing;
  std::mutex planned_mutex;
  std::vector<std::thread::id> planned_on;  // thread of each plan
  apply::JobRefusals job_refusals;
  apply::ReleaseRefusals release_refusals{clock, [](const std::string&) {}};
  apply::Executor executor;
  dry_run::DryRuns dry_runs;
  kube::WorkQueue dry_run_keys;
  dry_run::ReleaseDryRuns release_dry_runs{
      {.client = server, .clock = clock, .refusals = release_refusals}};
  dry_run::DryRunQueue dry_run_queue;
  std::vector<std::string> woken;  // the warmups with a new result of a dry run
  apply::BuildRequests build_requests;
  kube::WorkQueue log_read_keys{clock};
  apply::LogReads log_reads;
  Warmups warmups;
};

TEST_F(WarmupsTest, MissingWorkloadSetsCondition) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  StartCache();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(ReadyReason(), "WorkloadNotFound");
  EXPECT_FALSE(Warmup()["metadata"]["labels"].contains("cachewarm.io/inject"));
}

TEST_F(WarmupsTest, DryRunPrecedesInjection) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  server.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "uid-n1"));
  StartCache();
  const auto outcome = Reconcile();
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(woken, std::vector<std::string>{"default/llama"})
      << "a new result is planned on at once";
  EXPECT_EQ(dry_runs.Last("uid-llama").injected, model::DryRunResult::kAllowed);
  EXPECT_EQ(Metric("cachewarm_admission_dry_runs_total{result=\"allowed\"}"), 1);
}

TEST_F(WarmupsTest, DryRunOfAReleasePrecedesTheFirstGate) {
  codec::Json warmup = WarmupObject("llama");
  server.Put(kube::kCacheWarmups, warmup);
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  server.Put(kube::kPods, PodObject("running"));
  server.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "uid-n1"));
  server.OnWrite([](const kube::Request& request, codec::Json&) {
    return request.resource == "pods" && request.verb == "patch"
               ? absl::PermissionDeniedError("pods are frozen")
               : absl::OkStatus();
  });
  StartCache();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_THAT(release_refusals.Of("default").message, HasSubstr("frozen"));
  ASSERT_TRUE(Seen());
  const auto outcome = Reconcile();
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(ReasonOf("Degraded"), "ReleaseRejected");
  EXPECT_LE(outcome->requeue_after, std::chrono::minutes(9)) << "confirmed before it expires";
}

TEST_F(WarmupsTest, WarmupThatHoldsNoPodsNeedsNoDryRunOfARelease) {
  codec::Json warmup = WarmupObject("llama");
  warmup["spec"]["gate"] = {{"mode", "Never"}};
  server.Put(kube::kCacheWarmups, warmup);
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  server.Put(kube::kPods, PodObject("running"));
  server.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "uid-n1"));
  StartCache();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_THAT(server.Requests(), Not(Contains(HasSubstr("patch pods"))));
}

TEST_F(WarmupsTest, SuspendedBundleIsCountedUntilReplaced) {
  const std::string cpu_class = "x86-64-v4/amd-25-17/5c0d9f21";
  const auto bundle = [&](const std::string& image, char digest) {
    const std::string key = *fingerprint::KeyOf({.gpu_type = "cpu",
                                                 .cpu_class = cpu_class,
                                                 .image = image,
                                                 .devices = 0,
                                                 .container = "server"});
    return codec::Json{{"key", key},
                       {"gpuType", "cpu"},
                       {"cpuClass", cpu_class},
                       {"image", image},
                       {"digest", "sha256:" + std::string(64, digest)},
                       {"native", true}};
  };
  const auto suspended = [&](const std::string& image, char digest) {
    codec::Json out = bundle(image, digest);
    out["hungStarts"] = {{{"podUID", "u1"},
                          {"pod", "llama-0"},
                          {"node", "n1"},
                          {"startedTime", "2026-01-01T00:00:00Z"},
                          {"detectedTime", "2026-01-01T00:10:00Z"}}};
    return out;
  };
  codec::Json warmup = WarmupObject("llama");
  warmup["status"]["suspendedBundles"] = {suspended("registry/llama:0", 'a'),
                                          suspended("registry/llama:1", 'b')};
  server.Put(kube::kCacheWarmups, warmup);
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  server.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  codec::Json cache = NodeCacheObject("n1", "uid-n1");
  cache["status"]["node"] = {{"gpuType", "cpu"}, {"cpuClass", cpu_class}};
  server.Put(kube::kNodeCaches, cache);
  StartCache();
  const std::string series = "cachewarm_suspended_bundles{namespace=\"default\",warmup=\"llama\"}";
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(Metric(series), 1) << "no pod uses the image of the first one any more";
  server.Edit(kube::kCacheWarmups, {"default", "llama"}, [&](codec::Json& edited) {
    edited["status"]["bundles"] = codec::Json::array({bundle("registry/llama:1", 'c')});
  });
  ASSERT_TRUE(Seen());
  clock.Advance(std::chrono::seconds(5));
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(Metric(series), 0);
}

TEST_F(WarmupsTest, StaleStoreDelaysPlanning) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  StartCache();
  StopCache();  // keeps the store stale
  ASSERT_TRUE(Reconcile().ok());
  const size_t before = Writes();
  const auto outcome = Reconcile();
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(outcome->requeue_after.has_value());
  EXPECT_EQ(Writes(), before) << "planned twice on the same object";
  clock.Advance(std::chrono::seconds(5));
  EXPECT_TRUE(absl::IsAborted(Reconcile().status())) << "after a while it tries anyway";
}

TEST_F(WarmupsTest, ConvergesToNoWrites) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  server.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "uid-n1"));
  StartCache();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(Reconcile().ok());
    ASSERT_TRUE(Seen());
    ASSERT_TRUE(Eventually([&] {
      const kube::Object stored = cluster.node_caches.store().Get({.name = "n1"});
      return kube::ResourceVersionOf(*stored) ==
             kube::ResourceVersionOf(*server.Find(kube::kNodeCaches, {.name = "n1"}));
    }));
  }
  const size_t before = Writes();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(Writes(), before);
  EXPECT_EQ(ReadyReason(), "DirectoryUnusable");  // no agent runs on n1
  EXPECT_EQ(SpecOf("n1")["warmups"][0]["uid"], "uid-llama");
}

TEST_F(WarmupsTest, DeletedWarmupLeavesNothing) {
  PutEntryOf("uid-llama");
  server.Put(kube::kPods, HeldPodObject("held", "llama"));
  StartCache();
  ASSERT_EQ(LeftoverUids(cluster, {"default", "llama"}, ""), std::vector<std::string>{"uid-llama"});
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_FALSE(SpecOf("n1").contains("warmups") && !SpecOf("n1")["warmups"].empty());
  const kube::Object pod = server.Find(kube::kPods, {"default", "held"});
  const codec::Json* gates = codec::At(*pod, {"spec", "schedulingGates"});
  EXPECT_TRUE(gates == nullptr || gates->empty());
}

TEST_F(WarmupsTest, RecreatedWarmupKeepsPodsAndLosesOldEntries) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  PutEntryOf("uid-before");
  StartCache();
  EXPECT_EQ(LeftoverUids(cluster, {"default", "llama"}, "uid-llama"),
            std::vector<std::string>{"uid-before"});
  ASSERT_TRUE(Reconcile().ok());
  for (const codec::Json& entry : SpecOf("n1").value("warmups", codec::Json::array())) {
    EXPECT_NE(entry["uid"], "uid-before");
  }
}

TEST_F(WarmupsTest, SeriesOfADeletedWarmupAreRemoved) {
  codec::Json warmup = WarmupObject("llama");
  warmup["status"]["starts"]["gpuTypes"] =
      codec::Json::array({{{"gpuType", "cpu"}, {"counts", {{"hit", 7}}}}});
  server.Put(kube::kCacheWarmups, warmup);
  StartCache();
  const auto hits = [this] {
    return Metric(
        "cachewarm_pod_starts_total{namespace=\"default\",warmup=\"llama\","
        "gpu_type=\"cpu\",result=\"hit\"}");
  };
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(hits(), 7);
  // The controller sees only the new object, not the time between the two.
  warmup["metadata"]["uid"] = "uid-successor";
  warmup["status"]["starts"]["gpuTypes"][0]["counts"]["hit"] = 2;
  server.Remove(kube::kCacheWarmups, {"default", "llama"});
  server.Put(kube::kCacheWarmups, warmup);
  ASSERT_TRUE(Seen());
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(hits(), 2);
  server.Remove(kube::kCacheWarmups, {"default", "llama"});
  ASSERT_TRUE(Eventually([&] {
    return cluster.warmups.store().Find({"default", "llama"}) == nullptr;
  }));
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(hits(), -1);
}

TEST_F(WarmupsTest, PodsThatCannotBeReleasedAreCountedAsHeldAndThenAsOverdue) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  codec::Json pod = HeldPodObject("held", "llama");
  pod["metadata"]["creationTimestamp"] = FormatTime(clock.Now());
  server.Put(kube::kPods, pod);
  server.Intercept([](const kube::Request& request) {
    return request.resource == "pods" && request.verb == "patch" ? absl::UnavailableError("down")
                                                                 : absl::OkStatus();
  });
  StartCache();
  const std::string labels = "{namespace=\"default\",warmup=\"llama\"}";
  EXPECT_TRUE(absl::IsUnavailable(Reconcile().status()));
  EXPECT_EQ(Metric("cachewarm_pods_held" + labels), 1);
  EXPECT_EQ(Metric("cachewarm_pods_held_past_deadline" + labels), 0);
  ASSERT_TRUE(Seen());
  clock.Advance(std::chrono::seconds(60 + 11));  // the default of spec.gate.maxHoldSeconds
  EXPECT_TRUE(absl::IsUnavailable(Reconcile().status()));
  EXPECT_EQ(Metric("cachewarm_pods_held_past_deadline" + labels), 1);
}

TEST_F(WarmupsTest, RejectedNodeCacheBlocksNothingElse) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  server.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "uid-n1"));
  RefuseNodeCaches();
  StartCache();
  const auto first = Reconcile();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(dry_runs.Last("uid-llama").injected, model::DryRunResult::kAllowed);
  ASSERT_TRUE(Seen());
  const auto outcome = Reconcile();
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  ASSERT_TRUE(outcome->requeue_after.has_value());
  EXPECT_LE(*outcome->requeue_after, std::chrono::seconds(30)) << "retried later";
  EXPECT_EQ(log.Count("spec.warmups: too many"), 2) << "once per attempt";
}

TEST_F(WarmupsTest, RejectedCleanupDoesNotBlockPresentWarmup) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  PutEntryOf("uid-before");
  RefuseNodeCaches();
  StartCache();
  const auto outcome = Reconcile();
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(ReadyReason(), "WorkloadNotFound");
  ASSERT_TRUE(outcome->requeue_after.has_value());
  EXPECT_LE(*outcome->requeue_after, std::chrono::seconds(30));
}

TEST_F(WarmupsTest, RejectedCleanupIsRetried) {
  PutEntryOf("uid-llama");
  RefuseNodeCaches();
  StartCache();
  EXPECT_EQ(Reconcile()->requeue_after, Duration(30'000));
  server.OnWrite(nullptr);
  EXPECT_EQ(Reconcile()->requeue_after, std::nullopt);
  EXPECT_TRUE(SpecOf("n1").value("warmups", codec::Json::array()).empty());
}

TEST_F(WarmupsTest, AllWorkersPlanOnOneThread) {
  const std::vector<std::string> names = {"llama", "gemma", "qwen", "phi"};
  for (const std::string& name : names) {
    server.Put(kube::kCacheWarmups, WarmupObject(name));
  }
  PutEntryOf("uid-before");
  StartCache();
  {
    std::vector<std::jthread> workers;
    for (const std::string& name : names) {
      workers.emplace_back(
          [this, name] { EXPECT_TRUE(warmups.Reconcile("default/" + name, {}).ok()); });
    }
  }
  EXPECT_EQ(planned_on.size(), names.size() + 1) << "and the plan that removes the entry";
  EXPECT_EQ(std::set(planned_on.begin(), planned_on.end()).size(), 1);
  EXPECT_THAT(planned_on, Not(Contains(std::this_thread::get_id())));
}

TEST_F(WarmupsTest, DeletedWarmupIsForgottenWithoutNodeCache) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  server.Put(kube::kNodes, NodeObject("n1", "uid-n1"));
  server.Put(kube::kNodeCaches, NodeCacheObject("n1", "uid-n1"));
  StartCache();
  ASSERT_TRUE(Reconcile().ok());
  ASSERT_NE(dry_runs.Last("uid-llama").fingerprint, "");
  job_refusals.Record("uid-llama", "job", "quota");
  server.Remove(kube::kCacheWarmups, {"default", "llama"});
  server.Remove(kube::kNodeCaches, {.name = "n1"});
  ASSERT_TRUE(Eventually([&] {
    return cluster.warmups.store().size() == 0 && cluster.node_caches.store().size() == 0;
  }));
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_EQ(dry_runs.Last("uid-llama").fingerprint, "");
  EXPECT_TRUE(job_refusals.Of("uid-llama").empty());
}

TEST_F(WarmupsTest, RejectedStatusIsReturnedAsError) {
  server.Put(kube::kCacheWarmups, WarmupObject("llama"));
  StartCache();
  server.Intercept([](const kube::Request& request) {
    return request.resource == "cachewarmups/status" ? absl::UnavailableError("down")
                                                     : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(Reconcile().status()));
  server.Intercept(nullptr);
  EXPECT_TRUE(Reconcile().ok()) << "a failed write causes no delay";
}

TEST_F(WarmupsTest, UnknownKeyIsIgnored) {
  StartCache();
  ASSERT_TRUE(Reconcile().ok());
  EXPECT_THAT(server.Requests(), Not(Contains(HasSubstr("apply"))));
  EXPECT_FALSE(warmups.Reconcile("//", {}).ok());
}

}  // namespace
}  // namespace cachewarm::controllers

// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/rejected_pods.h"

#include <gtest/gtest.h>

#include "fmt/format.h"
#include "operator/observe/workload.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::observe {
namespace {

using op::testing::DeploymentObject;
using op::testing::FromYaml;
using op::testing::PodObject;

api::CacheWarmup WarmupOf(const std::string& kind, const std::string& name) {
  api::CacheWarmup warmup{.ns = "default", .name = "llama", .uid = "u"};
  warmup.spec.workload_ref = api::WorkloadRef{.kind = kind, .name = name};
  return warmup;
}

constexpr const char* kRoot = "/mnt/disk/warm";  // of the node, as configured
constexpr const char* kVolumeForbidden = "violates PodSecurity: hostPath (volume \"cachewarm\")";

class RejectedPodsTest : public op::testing::ClusterCacheFixture {
 protected:
  struct EventSetup {
    std::string name = "e";
    std::string reason = "FailedCreate";
    std::string kind = "StatefulSet";
    std::string about = "llama";
    std::string note = kVolumeForbidden;
    std::string time = "2026-01-01T00:05:00Z";
    std::string field = "deprecatedLastTimestamp";
  };

  void PutEvent(const EventSetup& setup) {
    codec::Json event = {
        {"apiVersion", "events.k8s.io/v1"},
        {"kind", "Event"},
        {"metadata", {{"name", setup.name}, {"namespace", "default"}, {"uid", setup.name}}},
        {"reason", setup.reason},
        {"note", setup.note},
        {"regarding",
         {{"kind", setup.kind},
          {"namespace", "default"},
          {"name", setup.about},
          {"uid", "uid-" + setup.about}}}};
    if (setup.field == "series") {
      event["series"] = {{"count", 3}, {"lastObservedTime", setup.time}};
    } else {
      event[setup.field] = setup.time;
    }
    server.Put(kube::kEvents, event);
  }

  model::CreateFailure Failure(const api::CacheWarmup& warmup,
                               std::vector<std::shared_ptr<const api::Pod>> pods = {},
                               const model::AdmissionDryRun& dry_run = {}) {
    model::Snapshot snapshot{.warmup = warmup,
                             .workload = ResolveWorkload(cluster, warmup),
                             .dry_run = dry_run,
                             .pods = std::move(pods)};
    snapshot.settings.root = kRoot;
    return FindCreateFailure(cluster, snapshot);
  }
};

TEST_F(RejectedPodsTest, CreateFailureCountsOnlyIfItMentionsCachewarm) {
  struct Case {
    const char* message;
    bool own_host_path;
    bool counts;
  };
  const std::vector<Case> cases = {
      {"violates PodSecurity \"baseline:latest\": hostPath volumes (volume \"cachewarm\")", true,
       true},
      {"hostPath volumes are not allowed here", false, true},
      {"hostPath volumes are not allowed here", true, false},
      {"invalid mount /var/cache/cachewarm", false, true},
      {"policy: only paths below /data, not /mnt/disk/warm/default/llama", true, true},
      {"policy: only paths below /data, not /var/lib/cachewarm/default/llama", true, false},
      {"unknown scheduling gate cachewarm.io/wait-for-cache", false, true},
      {"exceeded quota: q", false, false},
      {"image policy: latest is not allowed", false, false},
  };
  for (const Case& test : cases) {
    codec::Json deployment = DeploymentObject("llama");
    deployment["status"]["conditions"] = {{{"type", "ReplicaFailure"},
                                           {"status", "True"},
                                           {"reason", "FailedCreate"},
                                           {"lastTransitionTime", "2026-01-01T00:00:05Z"},
                                           {"message", test.message}}};
    if (test.own_host_path) {
      deployment["spec"]["template"]["spec"]["volumes"] = {
          {{"name", "models"}, {"hostPath", {{"path", "/models"}}}}};
    }
    server.Put(kube::kDeployments, deployment);
    if (!cluster.HasSynced()) {
      StartCache();
    }
    ASSERT_TRUE(op::testing::Eventually([&] {
      const kube::Object seen = cluster.deployments.store().Get({"default", "llama"});
      return seen != nullptr && (*seen)["spec"] == deployment["spec"] &&
             (*seen)["status"]["conditions"] == deployment["status"]["conditions"];
    }));
    const model::CreateFailure failure = Failure(WarmupOf("Deployment", "llama"));
    EXPECT_EQ(failure.time != WallTime{}, test.counts) << test.message;
    EXPECT_EQ(failure.message, test.counts ? test.message : "");
  }
}

TEST_F(RejectedPodsTest, EventCountsForEachTimeField) {
  int at = 0;
  for (const char* field : {"eventTime", "deprecatedLastTimestamp", "series"}) {
    PutEvent({.name = "e" + std::to_string(at++), .about = field, .field = field});
  }
  StartCache();
  for (const char* field : {"eventTime", "deprecatedLastTimestamp", "series"}) {
    const model::CreateFailure failure = Failure(WarmupOf("StatefulSet", field));
    EXPECT_EQ(FormatTime(failure.time), "2026-01-01T00:05:00Z") << field;
    EXPECT_EQ(failure.message, kVolumeForbidden);
  }
}

TEST_F(RejectedPodsTest, UnrelatedEventsDoNotCount) {
  PutEvent({.name = "another", .about = "mistral"});
  PutEvent({.name = "kind", .kind = "Job"});
  PutEvent({.name = "quota", .note = "exceeded quota: gpus"});
  PutEvent({.name = "reason", .reason = "FailedKillPod"});
  StartCache();
  EXPECT_EQ(Failure(WarmupOf("StatefulSet", "llama")).time, WallTime{});
}

TEST_F(RejectedPodsTest, EventBeforeConditionChangeIsIgnored) {
  PutEvent({});
  StartCache();
  api::CacheWarmup warmup = WarmupOf("StatefulSet", "llama");
  warmup.status.conditions = {{.type = "Ready",
                               .status = "True",
                               .reason = "Injecting",
                               .last_transition_time = *ParseTime("2026-01-01T00:04:00Z")}};
  EXPECT_NE(Failure(warmup).time, WallTime{});
  warmup.status.conditions[0].last_transition_time = *ParseTime("2026-01-01T00:06:00Z");
  EXPECT_EQ(Failure(warmup).time, WallTime{});
}

// Pods created before the suspension had reached every API server.
TEST_F(RejectedPodsTest, SuccessfulDryRunOutdatesEventsWhileSuspended) {
  PutEvent({});
  StartCache();
  api::CacheWarmup warmup = WarmupOf("StatefulSet", "llama");
  warmup.status.conditions = {{.type = "Ready",
                               .status = "False",
                               .reason = "InjectionRejected",
                               .last_transition_time = *ParseTime("2026-01-01T00:04:00Z")}};
  model::AdmissionDryRun dry_run{.time = *ParseTime("2026-01-01T00:06:00Z"),
                                 .unmodified = model::DryRunResult::kAllowed,
                                 .injected = model::DryRunResult::kAllowed};
  EXPECT_NE(Failure(warmup).time, WallTime{});
  EXPECT_EQ(Failure(warmup, {}, dry_run).time, WallTime{});
  dry_run.injected = model::DryRunResult::kUnknown;
  EXPECT_NE(Failure(warmup, {}, dry_run).time, WallTime{}) << "inconclusive";
  dry_run.injected = model::DryRunResult::kAllowed;
  dry_run.time = *ParseTime("2026-01-01T00:04:30Z");
  EXPECT_NE(Failure(warmup, {}, dry_run).time, WallTime{}) << "older than the event";
}

// Messages of other policies need not mention cachewarm; events without such a mention are not
// kept.
TEST_F(RejectedPodsTest, OwnerConditionCountsWithoutEvent) {
  codec::Json deployment = DeploymentObject("llama");
  deployment["status"]["conditions"] = {{{"type", "ReplicaFailure"},
                                         {"status", "True"},
                                         {"lastTransitionTime", "2026-01-01T00:00:05Z"},
                                         {"message", "hostPath volumes are not allowed here"}}};
  server.Put(kube::kDeployments, deployment);
  StartCache();
  api::CacheWarmup warmup{.ns = "default", .name = "any", .uid = "u"};
  warmup.spec.selector = {{"app", "llama"}};
  EXPECT_EQ(FormatTime(Failure(warmup).time), "2026-01-01T00:00:05Z");
}

TEST_F(RejectedPodsTest, EventsOfPodOwnersCount) {
  PutEvent({.kind = "Gang", .about = "mine"});
  StartCache();
  api::CacheWarmup warmup{.ns = "default", .name = "llama", .uid = "u"};
  warmup.spec.selector = {{"app", "llama"}};
  EXPECT_EQ(Failure(warmup).time, WallTime{});
  api::Pod pod;
  pod.owner_kind = "Gang";
  pod.owner_name = "mine";
  const auto owned = std::make_shared<const api::Pod>(pod);
  EXPECT_NE(Failure(warmup, {owned}).time, WallTime{});
}

// An owner of owners and its child; the rejected pod is the first one.
struct Between {
  kube::Resource owner;
  const char* owner_spec;
  kube::Resource maker;
  const char* labels;         // of its pod template
  const char* refused_maker;  // kind of the event's regarding object
};

TEST_F(RejectedPodsTest, EventsOfTemplateOwnersCountWithoutPods) {
  const std::vector<Between> cases = {
      {kube::kCronJobs, "{jobTemplate: {spec: {template: {metadata: {labels: {app: llama}}}}}}",
       kube::kJobs, "{app: llama, job-name: x}", "Job"},
      {kube::kLeaderWorkerSets, "{leaderWorkerTemplate: {workerTemplate: {}}}", kube::kStatefulSets,
       "{leaderworkerset.sigs.k8s.io/name: leaderworkersets}", "StatefulSet"},
      {kube::kInferenceServices, "{predictor: {}}", kube::kDeployments,
       "{serving.kserve.io/inferenceservice: inferenceservices, component: predictor}",
       "ReplicaSet"},
  };
  const auto put = [&](const kube::Resource& resource, const std::string& name,
                       const std::string& spec, const std::string& status) {
    codec::Json object = FromYaml("{spec: " + spec + ", status: " + status + "}");
    object["apiVersion"] = resource.ApiVersion();
    object["kind"] = resource.kind;
    object["metadata"] = {{"namespace", "default"}, {"name", name}, {"uid", "uid-" + name}};
    server.Put(resource, object);
  };
  for (const Between& test : cases) {
    const std::string owner(test.owner.plural);
    const std::string maker = owner + "-1";
    put(test.owner, owner, test.owner_spec, "{}");
    put(test.maker, maker, fmt::format("{{template: {{metadata: {{labels: {}}}}}}}", test.labels),
        fmt::format("{{conditions: [{{type: ReplicaFailure, status: \"{}\", message: '{}', "
                    "lastTransitionTime: \"2026-01-01T00:05:00Z\"}}]}}",
                    test.refused_maker == std::string("ReplicaSet") ? "True" : "False",
                    kVolumeForbidden));
    PutEvent({.name = maker, .kind = test.refused_maker, .about = maker});
  }
  StartCache();
  for (const Between& test : cases) {
    const std::string owner(test.owner.plural);
    EXPECT_EQ(FormatTime(Failure(WarmupOf(std::string(test.owner.kind), owner)).time),
              "2026-01-01T00:05:00Z")
        << owner;
    EXPECT_EQ(Failure(WarmupOf(std::string(test.owner.kind), "another")).time, WallTime{}) << owner;
  }
}

TEST_F(RejectedPodsTest, MountFailureIsFoundByPodUid) {
  const char* note = "MountVolume.SetUp failed for volume \"cachewarm\" : not a directory";
  PutEvent(
      {.name = "cachewarm", .reason = "FailedMount", .kind = "Pod", .about = "a", .note = note});
  PutEvent({.name = "other",
            .reason = "FailedMount",
            .kind = "Pod",
            .about = "b",
            .note = "MountVolume.SetUp failed for volume \"models\""});
  StartCache();
  std::vector<std::shared_ptr<const api::Pod>> pods;
  for (const char* name : {"a", "b"}) {
    codec::Json object = PodObject(name);
    object["spec"]["nodeName"] = "n1";
    pods.push_back(std::make_shared<const api::Pod>(
        *api::DecodePod(std::make_shared<const codec::Json>(object))));
  }
  const auto failures = FindMountFailures(cluster, pods, kRoot);
  EXPECT_EQ(failures, (std::map<std::string, std::string>{{"uid-a", note}}));

  api::Pod started = *pods[0];
  started.containers = {{.name = "server", .running = true}};
  EXPECT_TRUE(
      FindMountFailures(cluster, {std::make_shared<const api::Pod>(started)}, kRoot).empty())
      << "mounted late, not rejected";
}

}  // namespace
}  // namespace cachewarm::observe

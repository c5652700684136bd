// SPDX-License-Identifier: Apache-2.0
#include "operator/controllers/annotation_requests.h"

#include <gtest/gtest.h>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/codec/json_path.h"
#include "operator/annotations/retention.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::controllers {
namespace {

using codec::Json;
using op::testing::DeploymentObject;
using op::testing::Eventually;
using op::testing::FromYaml;
using op::testing::NamespaceObject;
using op::testing::OptedInNamespaceObject;

constexpr char kKey[] = "Deployment/default/llama";
constexpr char kJobKey[] = "Job/default/llama";

class AnnotationRequestsTest : public op::testing::ClusterCacheFixture {
 protected:
  AnnotationRequestsTest()
      : requests_(cluster, {.client = server, .clock = clock, .events = events, .log = log}) {
    server.Put(kube::kNamespaces, NamespaceObject("default"));
  }

  static Json Annotated(const std::map<std::string, std::string>& annotations) {
    Json deployment = DeploymentObject("llama");
    for (const auto& [name, value] : annotations) {
      deployment["metadata"]["annotations"]["cachewarm.io/" + name] = value;
    }
    return deployment;
  }

  kube::Object Found() const {
    return server.Find(kube::kCacheWarmups, {.ns = "default", .name = "llama"});
  }

  // Reconciles and waits until the store has the result.
  kube::Outcome Reconcile(const std::string& key = kKey) {
    const auto outcome = requests_.Reconcile(key, {});
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_TRUE(Eventually([&] { return IsCurrent(); }));
    return outcome.value_or(kube::Outcome{});
  }
  bool IsCurrent() const {
    const kube::Object stored = cluster.warmups.store().Get({.ns = "default", .name = "llama"});
    const kube::Object found = Found();
    return (stored == nullptr) == (found == nullptr) &&
           (stored == nullptr ||
            kube::ResourceVersionOf(*stored) == kube::ResourceVersionOf(*found));
  }

  void Change(const Json& deployment) {
    const kube::Object put = server.Put(kube::kDeployments, deployment);
    ASSERT_TRUE(Eventually([&] {
      const kube::Object stored =
          cluster.deployments.store().Get({.ns = "default", .name = "llama"});
      return stored != nullptr && kube::ResourceVersionOf(*stored) == kube::ResourceVersionOf(*put);
    }));
  }

  static Json AnnotatedJob(const std::string& name, const std::string& uid) {
    Json job = FromYaml(R"(
apiVersion: batch/v1
kind: Job
metadata: {namespace: default, annotations: {cachewarm.io/warm: "true"}}
spec: {template: {spec: {containers: []}}}
)");
    job["metadata"]["name"] = name;
    job["metadata"]["uid"] = uid;
    return job;
  }
  // Names whose order is that of their numbers.
  static std::string NameOfRun(size_t number) { return "run-" + std::to_string(100 + number); }

  void PutJob(const Json& job) {
    server.Put(kube::kJobs, job);
    ASSERT_TRUE(Eventually([&] { return cluster.jobs.store().Get(kube::NameOf(job)) != nullptr; }));
  }
  void RemoveJob(const std::string& name) {
    const kube::ObjectName job{.ns = "default", .name = name};
    server.Remove(kube::kJobs, job);
    ASSERT_TRUE(Eventually([&] { return cluster.jobs.store().Get(job) == nullptr; }));
  }
  std::string ExpiresAt(const std::string& name) const {
    const kube::Object warmup = server.Find(kube::kCacheWarmups, {.ns = "default", .name = name});
    return warmup == nullptr
               ? ""
               : codec::TextAt(*warmup, {"metadata", "annotations", api::kExpiresAtAnnotation});
  }

  AnnotationRequests requests_;
};

TEST_F(AnnotationRequestsTest, AnnotatedDeploymentGetsItsWarmup) {
  server.Put(kube::kDeployments, Annotated({{"warm", "true"}, {"max-hold-seconds", "5"}}));
  StartCache();
  Reconcile();
  const kube::Object made = Found();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ((*made)["spec"]["workloadRef"]["kind"], "Deployment");
  EXPECT_EQ((*made)["spec"]["gate"]["maxHoldSeconds"], 5);
  EXPECT_EQ(kube::ControllerOf(*made).uid, "uid-llama");
  EXPECT_EQ(events.Count("WarmupCreated"), 1);
}

TEST_F(AnnotationRequestsTest, RepeatedReconcileWritesNothing) {
  server.Put(kube::kDeployments, Annotated({{"warm", "true"}, {"gate", "Never"}}));
  StartCache();
  Reconcile();
  const size_t before = Writes();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Reconcile().requeue_after, std::nullopt);
  }
  EXPECT_EQ(Writes(), before);
  EXPECT_EQ(events.All().size(), 1U);
}

TEST_F(AnnotationRequestsTest, RemovedOverrideLeavesTheSpec) {
  server.Put(kube::kDeployments, Annotated({{"warm", "true"}, {"gate", "Never"}}));
  StartCache();
  Reconcile();
  Change(Annotated({{"warm", "true"}}));
  Reconcile();
  EXPECT_EQ(codec::At(*Found(), {"spec", "gate", "mode"}), nullptr) << *Found();
}

TEST_F(AnnotationRequestsTest, InvalidAnnotationIsReportedOnceAndSpecStays) {
  server.Put(kube::kDeployments, Annotated({{"warm", "true"}, {"gate", "Never"}}));
  StartCache();
  Reconcile();
  const Json good = *Found();
  Change(Annotated({{"warm", "true"}, {"gate", "Sometimes"}}));
  for (int i = 0; i < 3; ++i) {
    Reconcile();
  }
  EXPECT_EQ(*Found(), good);
  EXPECT_EQ(events.Count(std::string(api::reason::kInvalidAnnotation)), 1);
  Change(Annotated({{"warm", "true"}, {"gate", "Hold"}}));
  Reconcile();
  EXPECT_EQ((*Found())["spec"]["gate"]["mode"], "Hold");
  Change(Annotated({{"warm", "true"}, {"gate", "Sometimes"}}));
  Reconcile();
  EXPECT_EQ(events.Count(std::string(api::reason::kInvalidAnnotation)), 2);
}

TEST_F(AnnotationRequestsTest, NewLeaderKeepsTheRemovalTime) {
  server.Put(kube::kDeployments, Annotated({{"warm", "true"}}));
  StartCache();
  Reconcile();
  Change(DeploymentObject("llama"));
  EXPECT_EQ(Reconcile().requeue_after, annotations::kRemovalGrace);
  clock.Advance(Duration(400'000));
  AnnotationRequests next(cluster,
                          {.client = server, .clock = clock, .events = events, .log = log});
  EXPECT_EQ(next.Reconcile(kKey, {})->requeue_after, Duration(200'000));
  EXPECT_NE(Found(), nullptr);
  clock.Advance(Duration(200'000));
  EXPECT_TRUE(next.Reconcile(kKey, {}).ok());
  EXPECT_EQ(Found(), nullptr);
  EXPECT_EQ(events.Count("WarmupDeleted"), 1);
}

TEST_F(AnnotationRequestsTest, RestoredAnnotationLeavesNoTrace) {
  server.Put(kube::kDeployments, Annotated({{"warm", "true"}}));
  StartCache();
  Reconcile();
  const std::string uid = kube::UidOf(*Found());
  Change(DeploymentObject("llama"));
  Reconcile();
  clock.Advance(Duration(60'000));
  Change(Annotated({{"warm", "true"}}));
  Reconcile();
  EXPECT_EQ(kube::UidOf(*Found()), uid);
  EXPECT_FALSE((*Found())["metadata"]["annotations"].contains(
      std::string(api::kRemovalRequestedAtAnnotation)));
}

TEST_F(AnnotationRequestsTest, ConcurrentlyCreatedWarmupIsNotOverwritten) {
  server.Put(kube::kDeployments, Annotated({{"warm", "true"}}));
  StartCache();
  // The store does not have it yet.
  server.Intercept([&](const kube::Request& request) {
    return request.verb == "create" && request.resource == "cachewarmups"
               ? absl::AlreadyExistsError("created concurrently")
               : absl::OkStatus();
  });
  EXPECT_TRUE(requests_.Reconcile(kKey, {})->requeue_after.has_value());
  server.Intercept(nullptr);
  Json foreign = op::testing::WarmupObject("llama");
  server.Put(kube::kCacheWarmups, foreign);
  ASSERT_TRUE(Eventually([&] { return IsCurrent(); }));
  Reconcile();
  EXPECT_EQ(kube::UidOf(*Found()), "uid-llama");
  EXPECT_EQ(kube::ControllerOf(*Found()).uid, "");
  EXPECT_EQ(events.Count(std::string(api::reason::kWarmupNameTaken)), 1);
}

TEST_F(AnnotationRequestsTest, RejectedWarmupIsReportedOnTheWorkload) {
  server.Put(kube::kDeployments, Annotated({{"warm", "true"}}));
  StartCache();
  server.Intercept([](const kube::Request& request) {
    return request.verb == "create" ? absl::InvalidArgumentError("spec.caches: too many")
                                    : absl::OkStatus();
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_GE(*requests_.Reconcile(kKey, {})->requeue_after, Duration(60'000));
  }
  EXPECT_EQ(events.Count(std::string(api::reason::kInvalidAnnotation)), 1);
}

TEST_F(AnnotationRequestsTest, NamespaceLabelCoversWorkloadsWithAccelerator) {
  server.Put(kube::kNamespaces, OptedInNamespaceObject("default"));
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  Json gpu = DeploymentObject("gpu");
  gpu["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 1;
  server.Put(kube::kDeployments, gpu);
  gpu["metadata"]["name"] = "opted-out";
  gpu["metadata"]["annotations"]["cachewarm.io/warm"] = "false";
  server.Put(kube::kDeployments, gpu);
  StartCache();
  for (const char* name : {"llama", "gpu", "opted-out"}) {
    EXPECT_TRUE(requests_.Reconcile(std::string("Deployment/default/") + name, {}).ok());
  }
  const auto made = server.All(kube::kCacheWarmups);
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(kube::NameOf(*made[0]).name, "gpu");
}

TEST_F(AnnotationRequestsTest, ChildrenAndEndedJobsAreSkipped) {
  Json child = Annotated({{"warm", "true"}});
  child["metadata"]["ownerReferences"] = FromYaml(
      "[{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, name: x, uid: u, "
      "controller: true}]");
  server.Put(kube::kDeployments, child);
  server.Put(kube::kJobs, FromYaml(R"(
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: default, uid: j, annotations: {cachewarm.io/warm: "true"}}
spec: {template: {spec: {containers: []}}}
status: {conditions: [{type: Complete, status: "True"}]}
)"));
  StartCache();
  Reconcile();
  Reconcile("Job/default/train");
  EXPECT_TRUE(server.All(kube::kCacheWarmups).empty());
}

TEST_F(AnnotationRequestsTest, WarmupOutlivesItsJobAndServesTheNextOne) {
  server.Put(kube::kJobs, AnnotatedJob("llama", "run-1"));
  StartCache();
  Reconcile(kJobKey);
  const kube::Object made = Found();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(kube::ControllerOf(*made).kind, "Namespace");
  EXPECT_EQ(kube::ControllerOf(*made).uid, "uid-default");

  RemoveJob("llama");
  Reconcile(kJobKey);
  ASSERT_NE(Found(), nullptr);
  EXPECT_EQ(ExpiresAt("llama"), FormatTime(clock.Now() + annotations::kRetention));
  clock.Advance(std::chrono::hours(24 * 6));
  const size_t before = Writes();
  const auto wait = Reconcile(kJobKey).requeue_after;
  ASSERT_TRUE(wait.has_value());
  EXPECT_LE(*wait, std::chrono::hours(24));
  EXPECT_GT(*wait, std::chrono::hours(23));
  EXPECT_EQ(Writes(), before);

  PutJob(AnnotatedJob("llama", "run-2"));
  Reconcile(kJobKey);
  ASSERT_NE(Found(), nullptr);
  EXPECT_EQ(ExpiresAt("llama"), "");
  EXPECT_EQ(kube::UidOf(*Found()), kube::UidOf(*made)) << "the same cache directory";
}

TEST_F(AnnotationRequestsTest, WarmupOfADeletedJobIsDeletedAfterSevenDaysByAnyLeader) {
  server.Put(kube::kJobs, AnnotatedJob("llama", "run-1"));
  StartCache();
  Reconcile(kJobKey);
  RemoveJob("llama");
  Reconcile(kJobKey);
  clock.Advance(annotations::kRetention);
  AnnotationRequests next(cluster,
                          {.client = server, .clock = clock, .events = events, .log = log});
  EXPECT_TRUE(next.Reconcile(kJobKey, {}).ok());
  EXPECT_EQ(Found(), nullptr);
  EXPECT_EQ(events.Count("WarmupDeleted"), 1);
}

TEST_F(AnnotationRequestsTest, OnlyTheLastJobsOfANamespaceLeaveAWarmup) {
  const size_t count = annotations::kRetainedMax + 3;
  for (size_t i = 0; i < count; ++i) {
    server.Put(kube::kJobs, AnnotatedJob(NameOfRun(i), NameOfRun(i)));
  }
  StartCache();
  for (size_t i = 0; i < count; ++i) {
    Reconcile("Job/default/" + NameOfRun(i));
  }
  ASSERT_EQ(server.All(kube::kCacheWarmups).size(), count);
  ASSERT_TRUE(Eventually([&] { return cluster.warmups.store().size() == count; }));
  for (size_t i = 0; i < count; ++i) {
    RemoveJob(NameOfRun(i));
    Reconcile("Job/default/" + NameOfRun(i));
    clock.Advance(std::chrono::minutes(1));
    ASSERT_TRUE(Eventually([&] {
      const kube::Object stored =
          cluster.warmups.store().Get({.ns = "default", .name = NameOfRun(i)});
      return stored != nullptr && annotations::ExpiryTime(*stored).has_value();
    }));
  }
  for (size_t i = 0; i < count; ++i) {
    Reconcile("Job/default/" + NameOfRun(i));
  }
  EXPECT_EQ(server.All(kube::kCacheWarmups).size(), annotations::kRetainedMax);
  EXPECT_EQ(server.Find(kube::kCacheWarmups, {.ns = "default", .name = NameOfRun(2)}), nullptr);
  EXPECT_NE(server.Find(kube::kCacheWarmups, {.ns = "default", .name = NameOfRun(3)}), nullptr);
}

TEST_F(AnnotationRequestsTest, WarmupOfAUserForADeletedJobStays) {
  Json warmup = op::testing::WarmupObject("llama");
  warmup["spec"]["workloadRef"] = {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", "llama"}};
  server.Put(kube::kCacheWarmups, warmup);
  StartCache();
  const size_t before = Writes();
  EXPECT_EQ(Reconcile(kJobKey).requeue_after, std::nullopt);
  EXPECT_EQ(Writes(), before);
}

TEST_F(AnnotationRequestsTest, CustomKindIsHandledLikeBuiltIn) {
  server.Put(kube::kLeaderWorkerSets, FromYaml(R"(
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: big, namespace: default, uid: l, annotations: {cachewarm.io/warm: "true"}}
spec: {leaderWorkerTemplate: {workerTemplate: {spec: {containers: []}}}}
)"));
  StartCache();
  Reconcile("LeaderWorkerSet/default/big");
  const kube::Object made = server.Find(kube::kCacheWarmups, {.ns = "default", .name = "big"});
  ASSERT_NE(made, nullptr);
  EXPECT_EQ((*made)["spec"]["workloadRef"]["apiVersion"], "leaderworkerset.x-k8s.io/v1");
}

TEST_F(AnnotationRequestsTest, DeletedOrUnknownWorkloadIsIgnored) {
  StartCache();
  const size_t before = Writes();
  Reconcile();
  Reconcile("Pod/default/llama");
  EXPECT_FALSE(requests_.Reconcile("llama", {}).ok());
  EXPECT_EQ(Writes(), before);
}

TEST_F(AnnotationRequestsTest, NamespaceLabelCreatesNothingForPodsOfUnknownOwners) {
  server.Put(kube::kNamespaces, OptedInNamespaceObject("default"));
  Json pod = op::testing::PodObject("run-1");
  pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1";
  server.Put(kube::kPods, pod);
  pod["metadata"]["name"] = "run-2";
  pod["metadata"]["ownerReferences"] =
      op::testing::OwnedBy("batch.volcano.sh/v1alpha1", "Job", "run");
  server.Put(kube::kPods, pod);
  StartCache();
  for (const char* key : {"Namespace/default/default", "Pod/default/run-1", "Job/default/run"}) {
    Reconcile(key);
  }
  EXPECT_TRUE(server.All(kube::kCacheWarmups).empty());
  EXPECT_TRUE(events.All().empty());
}

}  // namespace
}  // namespace cachewarm::controllers

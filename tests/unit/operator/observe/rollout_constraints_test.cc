// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/rollout_constraints.h"

#include <gtest/gtest.h>

#include <functional>

#include "lib/api/workload_kinds.h"
#include "operator/observe/projections.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::observe {
namespace {

using codec::Json;
using op::testing::FromYaml;

api::CacheWarmup WarmupOf(const std::string& kind) {
  api::CacheWarmup warmup{.ns = "default", .name = "llama", .uid = "u"};
  warmup.spec.workload_ref = api::WorkloadRef{.kind = kind, .name = "llama"};
  return warmup;
}

Json Workload(const std::string& kind, const std::string& spec, int available) {
  Json object = FromYaml("{metadata: {name: llama, namespace: default, uid: w}, spec: {" + spec +
                         (spec.empty() ? "" : ", ") +
                         "template: {metadata: {labels: {app: llama}}, spec: {}}}}");
  object["kind"] = kind;
  for (const api::SupportedKind& each : api::kWorkloadKinds) {
    if (each.kind == kind) {
      object["apiVersion"] = std::string(each.api_version);
    }
  }
  object["status"] = {{"availableReplicas", available}, {"readyReplicas", available}};
  return object;
}

Json Budget(const std::string& name, const std::string& selector, int desired, int healthy) {
  Json object = FromYaml(
      "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: "
      "default}, spec: {minAvailable: 2, selector: " +
      selector + "}}");
  object["metadata"]["name"] = name;
  object["status"] = {{"desiredHealthy", desired}, {"currentHealthy", healthy}};
  return object;
}

Json Service(const std::string& name, const std::string& spec) {
  Json object = FromYaml("{metadata: {namespace: default, labels: {a: b}}, spec: " + spec + "}");
  object["metadata"]["name"] = name;
  return object;
}

class RolloutConstraintsTest : public op::testing::ClusterCacheFixture {};

struct Case {
  const char* name;
  const char* kind;
  const char* spec;
  model::RolloutConstraints wanted;
};

class WorkloadConstraints : public RolloutConstraintsTest,
                            public testing::WithParamInterface<Case> {};

TEST_P(WorkloadConstraints, AreReadFromTheObject) {
  const Case& each = GetParam();
  const Json object = Workload(each.kind, each.spec, 3);
  for (const kube::Resource& resource :
       {kube::kDeployments, kube::kStatefulSets, kube::kCronJobs, kube::kJobs, kube::kRollouts,
        kube::kInferenceServices, kube::kLeaderWorkerSets}) {
    if (resource.kind == each.kind) {
      server.Put(resource, object);
    }
  }
  StartCache();
  const model::RolloutConstraints seen = ReadRolloutConstraints(cluster, WarmupOf(each.kind));
  EXPECT_EQ(seen.recreate, each.wanted.recreate);
  EXPECT_EQ(seen.no_surge, each.wanted.no_surge);
  EXPECT_EQ(seen.in_order, each.wanted.in_order);
  EXPECT_EQ(seen.job_deadline, each.wanted.job_deadline);
  EXPECT_EQ(seen.progress_deadline, each.wanted.progress_deadline);
  EXPECT_EQ(seen.available, each.wanted.available);
  EXPECT_EQ(seen.required, each.wanted.required);
}

constexpr Duration kTenMinutes = std::chrono::minutes(10);

INSTANTIATE_TEST_SUITE_P(
    All, WorkloadConstraints,
    testing::Values(
        Case{"bare",
             "Deployment",
             "replicas: 4",
             {.progress_deadline = kTenMinutes, .available = 3, .required = 3}},
        Case{"recreate",
             "Deployment",
             "replicas: 4, strategy: {type: Recreate}",
             {.recreate = true, .progress_deadline = kTenMinutes, .available = 3, .required = 3}},
        Case{"no_surge",
             "Deployment",
             "replicas: 4, progressDeadlineSeconds: 30, strategy: {rollingUpdate: {maxSurge: 0%, "
             "maxUnavailable: 2}}",
             {.no_surge = true,
              .progress_deadline = std::chrono::seconds(30),
              .available = 3,
              .required = 2}},
        Case{"surge_of_one_percent",
             "Deployment",
             "replicas: 4, strategy: {rollingUpdate: {maxSurge: 1%, maxUnavailable: 0}}",
             {.progress_deadline = kTenMinutes, .available = 3, .required = 4}},
        Case{"more_may_be_missing_than_there_are",
             "Deployment",
             "replicas: 4, strategy: {rollingUpdate: {maxUnavailable: 9}}",
             {.progress_deadline = kTenMinutes, .available = 3, .required = 0}},
        Case{"odd_values",
             "Deployment",
             "replicas: 4, strategy: {rollingUpdate: {maxSurge: [], maxUnavailable: many}}",
             {.progress_deadline = kTenMinutes, .available = 3, .required = 3}},
        Case{"rollout",
             "Rollout",
             "replicas: 4, progressDeadlineSeconds: 60, strategy: {canary: {maxSurge: 0, "
             "maxUnavailable: 2}}",
             {.no_surge = true,
              .progress_deadline = std::chrono::minutes(1),
              .available = 3,
              .required = 2}},
        Case{"rollout_blue_green",
             "Rollout",
             "replicas: 4, strategy: {blueGreen: {activeService: llama}, canary: {maxSurge: 0}}",
             {.progress_deadline = kTenMinutes, .available = 3, .required = 4}},
        Case{"inference_service",
             "InferenceService",
             "predictor: {model: {}}",
             {.progress_deadline = kTenMinutes}},
        Case{"groups_one_after_the_other",
             "LeaderWorkerSet",
             "replicas: 4",
             {.available = 3, .required = 4}},
        Case{"groups_that_may_be_missing_only_where_one_is_made_in_addition",
             "LeaderWorkerSet",
             "replicas: 4, rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 2}}",
             {.available = 3, .required = 4}},
        Case{"groups_with_a_surge",
             "LeaderWorkerSet",
             "replicas: 4, rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 1}}",
             {.available = 3, .required = 3}},
        Case{"groups_with_a_surge_of_percent",
             "LeaderWorkerSet",
             "replicas: 4, rolloutStrategy: {rollingUpdateConfiguration: {maxSurge: 10%, "
             "maxUnavailable: 50%}}",
             {.available = 3, .required = 2}},
        Case{"in_order",
             "StatefulSet",
             "replicas: 4",
             {.in_order = true, .available = 3, .required = 4}},
        Case{"together",
             "StatefulSet",
             "replicas: 4, podManagementPolicy: Parallel",
             {.available = 3, .required = 4}},
        Case{"job", "Job", "parallelism: 4", {}},
        Case{"job_with_deadline", "Job", "activeDeadlineSeconds: 60", {.job_deadline = true}},
        Case{"jobs_with_deadline",
             "CronJob",
             "jobTemplate: {spec: {activeDeadlineSeconds: 60}}",
             {.job_deadline = true}}),
    [](const auto& each) { return each.param.name; });

struct NeedCase {
  const char* name;
  const char* spec;
  const char* status;
  int64_t pods_most;
  bool quota_exceeded;
};

class RequiredPods : public RolloutConstraintsTest, public testing::WithParamInterface<NeedCase> {};

TEST_P(RequiredPods, AreReadFromADeployment) {
  Json object = Workload("Deployment", GetParam().spec, 3);
  object["metadata"]["generation"] = 7;
  object["status"] = FromYaml(GetParam().status);
  server.Put(kube::kDeployments, object);
  StartCache();
  const model::RolloutConstraints seen = ReadRolloutConstraints(cluster, WarmupOf("Deployment"));
  EXPECT_EQ(seen.pods_most, GetParam().pods_most);
  EXPECT_EQ(seen.quota_exceeded, GetParam().quota_exceeded);
}

INSTANTIATE_TEST_SUITE_P(
    All, RequiredPods,
    testing::Values(
        NeedCase{"at_rest", "replicas: 5", "{observedGeneration: 7, updatedReplicas: 5}", 5, false},
        NeedCase{"not_seen", "replicas: 5", "{observedGeneration: 6, updatedReplicas: 5}", 7,
                 false},
        NeedCase{"rolls", "replicas: 5", "{observedGeneration: 7, updatedReplicas: 4}", 7, false},
        NeedCase{"recreate", "replicas: 5, strategy: {type: Recreate}", "{observedGeneration: 6}",
                 5, false},
        NeedCase{"asleep", "replicas: 0", "{observedGeneration: 6}", 0, false},
        NeedCase{"quota", "replicas: 1",
                 "{observedGeneration: 7, updatedReplicas: 1, conditions: [{type: ReplicaFailure, "
                 "status: 'True', message: 'pod is forbidden: exceeded quota: q'}]}",
                 1, true},
        NeedCase{"no_quota_any_more", "replicas: 1",
                 "{observedGeneration: 7, updatedReplicas: 1, conditions: [{type: ReplicaFailure, "
                 "status: 'False', message: 'pod is forbidden: exceeded quota: q'}]}",
                 1, false},
        NeedCase{"other_failure", "replicas: 1",
                 "{observedGeneration: 7, updatedReplicas: 1, conditions: [{type: ReplicaFailure, "
                 "status: 'True', message: 'pod is forbidden: no hostPath'}]}",
                 1, false}),
    [](const auto& each) { return each.param.name; });

struct RolloutCase {
  const char* name;
  const char* strategy;
  const char* status;
  int64_t pods_most;
};

class RequiredPodsOfARollout : public RolloutConstraintsTest,
                               public testing::WithParamInterface<RolloutCase> {};

// Argo writes observedGeneration as a string.
TEST_P(RequiredPodsOfARollout, AreTwiceTheReplicasWhileBlueGreenRolls) {
  Json object =
      Workload("Rollout", "replicas: 5, strategy: " + std::string(GetParam().strategy), 3);
  object["metadata"]["generation"] = 7;
  object["status"] = FromYaml(GetParam().status);
  server.Put(kube::kRollouts, object);
  StartCache();
  EXPECT_EQ(ReadRolloutConstraints(cluster, WarmupOf("Rollout")).pods_most, GetParam().pods_most);
}

INSTANTIATE_TEST_SUITE_P(
    All, RequiredPodsOfARollout,
    testing::Values(RolloutCase{"blue_green_rolls", "{blueGreen: {activeService: llama}}",
                                "{observedGeneration: '7', updatedReplicas: 4}", 10},
                    RolloutCase{"blue_green_at_rest", "{blueGreen: {activeService: llama}}",
                                "{observedGeneration: '7', updatedReplicas: 5}", 5},
                    RolloutCase{"blue_green_not_seen", "{blueGreen: {activeService: llama}}",
                                "{observedGeneration: '6', updatedReplicas: 5}", 10},
                    RolloutCase{"canary_rolls", "{canary: {}}",
                                "{observedGeneration: '7', updatedReplicas: 4}", 7},
                    RolloutCase{"canary_at_rest", "{canary: {}}",
                                "{observedGeneration: '7', updatedReplicas: 5}", 5},
                    RolloutCase{"odd_generation", "{canary: {}}",
                                "{observedGeneration: 9c0d, updatedReplicas: 5}", 7}),
    [](const auto& each) { return each.param.name; });

TEST_F(RolloutConstraintsTest, MatchingBudgetRaisesRequirement) {
  server.Put(kube::kDeployments, Workload("Deployment", "replicas: 4", 3));
  server.Put(kube::kPodDisruptionBudgets, Budget("a", "{matchLabels: {app: llama}}", 4, 3));
  server.Put(kube::kPodDisruptionBudgets, Budget("b", "{matchLabels: {app: other}}", 9, 0));
  StartCache();
  EXPECT_EQ(ReadRolloutConstraints(cluster, WarmupOf("Deployment")).required, 4);
}

TEST_F(RolloutConstraintsTest, BudgetCountsForEveryTemplateSource) {
  Json group = FromYaml(
      "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, metadata: {name: llama, "
      "namespace: default, uid: w}, spec: {replicas: 2, leaderWorkerTemplate: {workerTemplate: "
      "{metadata: {labels: {app: llama}}, spec: {}}}}, status: {readyReplicas: 2}}");
  server.Put(kube::kLeaderWorkerSets, group);
  server.Put(kube::kPodDisruptionBudgets, Budget("a", "{matchLabels: {app: llama}}", 4, 3));
  StartCache();
  const model::RolloutConstraints seen =
      ReadRolloutConstraints(cluster, WarmupOf("LeaderWorkerSet"));
  EXPECT_EQ(seen.required, 3) << "one more than available";
  EXPECT_EQ(seen.available, 2);
}

TEST_F(RolloutConstraintsTest, KueueLabelMarksWorkloadAsQueued) {
  Json job = Workload("Job", "parallelism: 4", 0);
  server.Put(kube::kJobs, job);
  StartCache();
  EXPECT_FALSE(ReadRolloutConstraints(cluster, WarmupOf("Job")).queued);
  job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "q";
  server.Put(kube::kJobs, job);
  EXPECT_TRUE(op::testing::Eventually(
      [&] { return ReadRolloutConstraints(cluster, WarmupOf("Job")).queued; }));
}

TEST_F(RolloutConstraintsTest, SelectedLabelKeysComeFromBudgetsAndServices) {
  server.Put(kube::kPodDisruptionBudgets, Budget("a", "{matchLabels: {tier: web}}", 1, 1));
  server.Put(kube::kPodDisruptionBudgets,
             Budget("b", "{matchExpressions: [{key: role, operator: In, values: [x]}]}", 1, 1));
  server.Put(kube::kPodDisruptionBudgets, Budget("c", "{}", 1, 1));
  server.Put(kube::kServices, Service("a", "{selector: {role: x, model: llama}}"));
  server.Put(kube::kServices, Service("external", "{type: ExternalName}"));
  server.Put(kube::kServices, Service("odd", "{selector: [tier]}"));
  StartCache();
  EXPECT_EQ(SelectedLabelKeys(cluster, "default"),
            (std::set<std::string>{"tier", "role", "model"}));
  EXPECT_TRUE(SelectedLabelKeys(cluster, "elsewhere").empty());
}

TEST_F(RolloutConstraintsTest, ServiceKeepsOnlyNameAndSelector) {
  server.Put(kube::kServices, Service("a", "{clusterIP: 10.0.0.1, selector: {role: x}}"));
  StartCache();
  EXPECT_EQ(*cluster.services.store().Get({"default", "a"}),
            FromYaml("{metadata: {namespace: default, name: a}, spec: {selector: {role: x}}}"));
}

class ForbiddenServices : public RolloutConstraintsTest {
 protected:
  void RefuseToList(const absl::Status& status) {
    server.Intercept([status](const kube::Request& request) {
      return request.resource == kube::kServices.plural ? status : absl::OkStatus();
    });
  }
  bool AfterAWhile(const std::function<bool()>& condition) {
    return op::testing::Eventually([&] {
      clock.Advance(std::chrono::seconds(1));
      return condition();
    });
  }
};

TEST_F(ForbiddenServices, CountAsNoneUntilListingIsAllowed) {
  server.Put(kube::kServices, Service("a", "{selector: {role: x}}"));
  RefuseToList(absl::PermissionDeniedError("services is forbidden"));
  cluster.Start(stop.get_token());
  ASSERT_TRUE(op::testing::Eventually([&] { return cluster.HasSynced(); }));
  EXPECT_TRUE(SelectedLabelKeys(cluster, "default").empty());
  EXPECT_EQ(log.Count("cannot list Services"), 1);
  server.Intercept(nullptr);
  EXPECT_TRUE(AfterAWhile([&] { return SelectedLabelKeys(cluster, "default").contains("role"); }));
}

TEST_F(ForbiddenServices, ServerErrorDoesNotCountAsForbidden) {
  RefuseToList(absl::UnavailableError("starting"));
  cluster.Start(stop.get_token());
  ASSERT_TRUE(op::testing::Eventually([&] { return cluster.pods.store().HasSynced(); }));
  EXPECT_FALSE(cluster.services.store().HasSynced());
  RefuseToList(absl::PermissionDeniedError("services is forbidden"));
  EXPECT_TRUE(AfterAWhile([&] { return cluster.services.store().HasSynced(); }));
}

TEST_F(RolloutConstraintsTest, BudgetAppliesWithoutCountingWorkload) {
  server.Put(kube::kPodDisruptionBudgets, Budget("a", "{matchLabels: {app: llama}}", 4, 3));
  StartCache();
  api::CacheWarmup warmup{.ns = "default", .name = "llama", .uid = "u"};
  warmup.spec.selector = {{"app", "llama"}};
  const model::RolloutConstraints seen = ReadRolloutConstraints(cluster, warmup);
  EXPECT_EQ(seen.available, 3);
  EXPECT_EQ(seen.required, 4);
}

// Warmups with a selector: the owners of such pods count.
class OwnerConstraintsTest : public RolloutConstraintsTest {
 protected:
  static api::CacheWarmup Selecting() {
    api::CacheWarmup warmup{.ns = "default", .name = "any", .uid = "u"};
    warmup.spec.selector = {{"app", "llama"}};
    return warmup;
  }
  void Put(const kube::Resource& resource, const std::string& name, const std::string& spec,
           int available = 0) {
    Json object = Workload(std::string(resource.kind), spec, available);
    object["metadata"]["name"] = name;
    server.Put(resource, object);
  }
  model::RolloutConstraints Seen() { return ReadRolloutConstraints(cluster, Selecting()); }
};

TEST_F(OwnerConstraintsTest, OneOwnerForbidsHoldsForAll) {
  Put(kube::kDeployments, "a", "strategy: {type: Recreate}");
  Put(kube::kDeployments, "b", "strategy: {rollingUpdate: {maxSurge: 0}}");
  Put(kube::kDeployments, "c", "progressDeadlineSeconds: 30");
  Put(kube::kStatefulSets, "d", "replicas: 1");
  Put(kube::kJobs, "e", "activeDeadlineSeconds: 60");
  StartCache();
  const model::RolloutConstraints seen = Seen();
  EXPECT_TRUE(seen.recreate && seen.no_surge && seen.in_order && seen.job_deadline);
  EXPECT_EQ(seen.progress_deadline, Duration(std::chrono::seconds(30)));
}

TEST_F(OwnerConstraintsTest, UnconstrainedOwnerAllowsHolds) {
  Put(kube::kDeployments, "a", "replicas: 4", 4);
  StartCache();
  const model::RolloutConstraints seen = Seen();
  EXPECT_FALSE(seen.recreate || seen.no_surge || seen.in_order || seen.job_deadline || seen.queued);
  EXPECT_EQ(seen.progress_deadline, kTenMinutes);
  EXPECT_EQ(seen.available, 4);
  EXPECT_EQ(seen.required, 3);
}

TEST_F(OwnerConstraintsTest, SurplusDoesNotOffsetMissingPods) {
  Put(kube::kDeployments, "spare", "replicas: 4", 4);
  Put(kube::kDeployments, "lacks", "replicas: 4", 2);
  StartCache();
  const model::RolloutConstraints seen = Seen();
  EXPECT_EQ(seen.required, 6);
  EXPECT_EQ(seen.available, 5);
}

TEST_F(OwnerConstraintsTest, StricterBudgetCounts) {
  Put(kube::kDeployments, "a", "replicas: 4", 4);
  Put(kube::kDeployments, "b", "replicas: 4", 3);
  server.Put(kube::kPodDisruptionBudgets, Budget("pdb", "{matchLabels: {app: llama}}", 8, 7));
  StartCache();
  const model::RolloutConstraints seen = Seen();
  EXPECT_EQ(seen.required, 8);
  EXPECT_EQ(seen.available, 7);
}

TEST_F(OwnerConstraintsTest, KServeServiceUsesItsDeployment) {
  server.Put(kube::kInferenceServices, Workload("InferenceService", "predictor: {model: {}}", 0));
  Json made = Workload("Deployment", "strategy: {type: Recreate}, progressDeadlineSeconds: 90", 1);
  made["metadata"]["name"] = "llama-predictor";
  made["spec"]["template"]["metadata"]["labels"] = {{"serving.kserve.io/inferenceservice", "llama"},
                                                    {"component", "predictor"}};
  server.Put(kube::kDeployments, made);
  StartCache();
  const model::RolloutConstraints seen =
      ReadRolloutConstraints(cluster, WarmupOf("InferenceService"));
  EXPECT_TRUE(seen.recreate);
  EXPECT_EQ(seen.progress_deadline, Duration(std::chrono::seconds(90)));
  EXPECT_EQ(seen.required, 1);
}

TEST_F(OwnerConstraintsTest, WorkloadRefIgnoresOtherOwners) {
  Put(kube::kDeployments, "llama", "replicas: 4", 4);
  Put(kube::kDeployments, "other", "strategy: {type: Recreate}");
  StartCache();
  EXPECT_FALSE(ReadRolloutConstraints(cluster, WarmupOf("Deployment")).recreate);
}

TEST_F(RolloutConstraintsTest, MissingOrUnknownWorkloadHasNoConstraints) {
  StartCache();
  for (const char* kind : {"Deployment", "CronTab"}) {
    const model::RolloutConstraints seen = ReadRolloutConstraints(cluster, WarmupOf(kind));
    EXPECT_EQ(seen.required, 0);
    EXPECT_FALSE(seen.recreate);
  }
}

TEST(SelectsLabels, MatchesApiSemantics) {
  const std::map<std::string, std::string> labels = {{"app", "llama"}, {"tier", "gpu"}};
  const std::vector<std::pair<const char*, bool>> cases = {
      {"{}", true},
      {"{matchLabels: {app: llama}}", true},
      {"{matchLabels: {app: llama, tier: cpu}}", false},
      {"{matchExpressions: [{key: tier, operator: In, values: [cpu, gpu]}]}", true},
      {"{matchExpressions: [{key: tier, operator: NotIn, values: [cpu, gpu]}]}", false},
      {"{matchExpressions: [{key: none, operator: NotIn, values: [cpu]}]}", true},
      {"{matchExpressions: [{key: tier, operator: Exists}]}", true},
      {"{matchExpressions: [{key: none, operator: DoesNotExist}]}", true},
      {"{matchExpressions: [{key: tier, operator: Resembles}]}", false},
      {"{matchExpressions: [5]}", false},
  };
  for (const auto& [selector, wanted] : cases) {
    EXPECT_EQ(SelectsLabels(FromYaml(selector), labels), wanted) << selector;
  }
}

TEST(ScaledValue, ReadsNumbersAndPercentages) {
  const Json number = 3;
  const Json percent = "25%";
  EXPECT_EQ(ScaledValue(&number, 10, true, 7), 3);
  EXPECT_EQ(ScaledValue(&percent, 10, true, 7), 3);
  EXPECT_EQ(ScaledValue(&percent, 10, false, 7), 2);
  EXPECT_EQ(ScaledValue(nullptr, 10, false, 7), 7);
  for (const char* odd : {"25", "-5%", "101%", "%", "x%", ""}) {
    const Json text = odd;
    EXPECT_EQ(ScaledValue(&text, 10, false, 7), 7) << odd;
  }
}

TEST(ProjectBudget, KeepsFieldsThatAreRead) {
  Json budget = Budget("a", "{matchLabels: {app: llama}}", 4, 3);
  budget["status"]["conditions"] = Json::array({1});
  budget["metadata"]["annotations"]["x"] = "y";
  ProjectBudget(budget);
  EXPECT_FALSE(budget["status"].contains("conditions"));
  EXPECT_FALSE(budget["spec"].contains("minAvailable"));
  EXPECT_EQ(budget["status"]["desiredHealthy"], 4);
  EXPECT_TRUE(budget["metadata"]["annotations"].empty());
}

}  // namespace
}  // namespace cachewarm::observe

// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/workload.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::observe {
namespace {

using op::testing::DeploymentObject;
using op::testing::FromYaml;

api::CacheWarmup WarmupOf(const std::string& kind, const std::string& name) {
  api::CacheWarmup warmup{.ns = "default", .name = "llama", .uid = "u"};
  warmup.spec.workload_ref = api::WorkloadRef{.kind = kind, .name = name};
  return warmup;
}

class WorkloadTest : public op::testing::ClusterCacheFixture {};

TEST_F(WorkloadTest, FindsDeploymentWithTemplate) {
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  StartCache();
  const model::Workload workload = ResolveWorkload(cluster, WarmupOf("Deployment", "llama"));
  EXPECT_TRUE(workload.found);
  EXPECT_EQ(workload.kind, model::WorkloadKind::kDeployment);
  EXPECT_EQ(workload.uid, "uid-llama");
  EXPECT_EQ(workload.replicas, 2);
  EXPECT_EQ(workload.selector.at("app"), "llama");
  ASSERT_NE(workload.pod_template, nullptr);
  EXPECT_EQ((*workload.pod_template)["spec"]["containers"][0]["name"], "server");
}

TEST_F(WorkloadTest, FindsStatefulSetsAndJobs) {
  codec::Json set = DeploymentObject("llama");
  set["kind"] = "StatefulSet";
  set["spec"].erase("replicas");
  server.Put(kube::kStatefulSets, set);
  server.Put(kube::kJobs, FromYaml(R"(
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: default, uid: j}
spec:
  parallelism: 3
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: j}}
  template: {metadata: {}, spec: {containers: []}}
)"));
  StartCache();
  const model::Workload first = ResolveWorkload(cluster, WarmupOf("StatefulSet", "llama"));
  EXPECT_EQ(first.kind, model::WorkloadKind::kStatefulSet);
  EXPECT_EQ(first.replicas, 1) << "the API's default";
  const model::Workload second = ResolveWorkload(cluster, WarmupOf("Job", "train"));
  EXPECT_EQ(second.kind, model::WorkloadKind::kJob);
  EXPECT_EQ(second.replicas, 3);
  EXPECT_EQ(second.selector.at("batch.kubernetes.io/controller-uid"), "j");
}

TEST_F(WorkloadTest, ProblemNamesMissingWorkload) {
  StartCache();
  const model::Workload none = ResolveWorkload(cluster, WarmupOf("Deployment", "llama"));
  EXPECT_FALSE(none.found);
  EXPECT_EQ(none.problem,
            "no Deployment named \"llama\" in namespace \"default\"; create it or correct "
            "spec.workloadRef");
  const model::Workload job = ResolveWorkload(cluster, WarmupOf("Job", "train"));
  EXPECT_FALSE(job.found);
  EXPECT_EQ(job.kind, model::WorkloadKind::kJob) << "its pods are matched by its name";
  const model::Workload odd = ResolveWorkload(cluster, WarmupOf("DaemonSet", "llama"));
  EXPECT_FALSE(odd.found);
}

TEST_F(WorkloadTest, FindsCronJobsByPodLabels) {
  server.Put(kube::kCronJobs, FromYaml(R"(
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: default, uid: c}
spec:
  jobTemplate:
    spec:
      template: {metadata: {labels: {app: nightly}}, spec: {containers: [{name: c}]}}
)"));
  server.Put(kube::kCronJobs, FromYaml(R"(
apiVersion: batch/v1
kind: CronJob
metadata: {name: bare, namespace: default, uid: b}
spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c}]}}}}}
)"));
  StartCache();
  const model::Workload found = ResolveWorkload(cluster, WarmupOf("CronJob", "nightly"));
  EXPECT_TRUE(found.found);
  EXPECT_EQ(found.kind, model::WorkloadKind::kCronJob);
  EXPECT_EQ(found.selector.at("app"), "nightly");
  ASSERT_NE(found.pod_template, nullptr);
  const model::Workload bare = ResolveWorkload(cluster, WarmupOf("CronJob", "bare"));
  EXPECT_FALSE(bare.found);
  EXPECT_NE(bare.problem.find("jobTemplate.spec.template.metadata.labels"), std::string::npos);
  EXPECT_FALSE(LacksPods(cluster, WarmupOf("CronJob", "nightly")));
}

TEST_F(WorkloadTest, RolloutUsesTemplateOfDeployment) {
  server.Put(kube::kRollouts, FromYaml(R"(
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: canary, namespace: default, uid: r}
spec: {replicas: 4, workloadRef: {apiVersion: apps/v1, kind: Deployment, name: llama}}
)"));
  StartCache();
  const model::Workload early = ResolveWorkload(cluster, WarmupOf("Rollout", "canary"));
  EXPECT_FALSE(early.found);
  EXPECT_NE(early.problem.find("Deployment \"llama\""), std::string::npos);
  server.Put(kube::kDeployments, DeploymentObject("llama"));
  ASSERT_TRUE(op::testing::Eventually([&] { return cluster.deployments.store().size() == 1; }));
  const model::Workload found = ResolveWorkload(cluster, WarmupOf("Rollout", "canary"));
  EXPECT_TRUE(found.found);
  EXPECT_EQ(found.uid, "r");
  EXPECT_EQ(found.replicas, 4);
  EXPECT_EQ(found.selector.at("app"), "llama");
  EXPECT_NE(found.pod_template, nullptr);
}

TEST_F(WorkloadTest, UnservedKindIsNotFound) {
  server.Serve(kube::kRayClusters, false);
  cluster.Start(stop.get_token());
  ASSERT_TRUE(op::testing::Eventually([&] { return cluster.HasSynced(); }));
  EXPECT_FALSE(ResolveWorkload(cluster, WarmupOf("RayCluster", "a")).found);
}

TEST_F(WorkloadTest, TemplateOrSelectorNeedsNoObject) {
  StartCache();
  api::CacheWarmup warmup{.ns = "default", .name = "llama"};
  warmup.spec.selector = {{"app", "x"}};
  EXPECT_EQ(ResolveWorkload(cluster, warmup).kind, model::WorkloadKind::kSelector);
  EXPECT_EQ(ResolveWorkload(cluster, warmup).selector.at("app"), "x");
  warmup.spec.pod_template = std::make_shared<const codec::Json>(FromYaml("{spec: {}}"));
  EXPECT_EQ(ResolveWorkload(cluster, warmup).kind, model::WorkloadKind::kTemplate);
  EXPECT_EQ(ResolveWorkload(cluster, warmup).replicas, 0);
}

TEST_F(WorkloadTest, LacksPodsDetectsMissingReplicas) {
  codec::Json deployment = DeploymentObject("llama");
  server.Put(kube::kDeployments, deployment);
  deployment["metadata"]["name"] = "short";
  deployment["status"]["replicas"] = 1;
  server.Put(kube::kDeployments, deployment);
  StartCache();
  EXPECT_FALSE(LacksPods(cluster, WarmupOf("Deployment", "llama")));
  EXPECT_TRUE(LacksPods(cluster, WarmupOf("Deployment", "short")));
  EXPECT_FALSE(LacksPods(cluster, WarmupOf("Deployment", "none")));
  api::CacheWarmup selects{.ns = "default", .name = "any", .uid = "v"};
  selects.spec.selector = {{"app", "llama"}};
  EXPECT_TRUE(LacksPods(cluster, selects)) << "one of the selected workloads";
  selects.spec.selector = {{"app", "another"}};
  EXPECT_FALSE(LacksPods(cluster, selects));
}

}  // namespace
}  // namespace cachewarm::observe

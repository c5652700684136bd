// SPDX-License-Identifier: Apache-2.0
#include "operator/workloads/shape.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"
#include "operator/workloads/accelerator_requests.h"

namespace cachewarm::workloads {
namespace {

using codec::Json;
using model::WorkloadKind;
using Labels = std::map<std::string, std::string>;

Json Yaml(const std::string& text) {
  return codec::ParseYaml(text).value();
}

std::string ImageOf(const WorkloadShape& shape) {
  return shape.pod_template == nullptr
             ? ""
             : (*shape.pod_template)["spec"]["containers"][0]["image"].get<std::string>();
}

constexpr char kGpuPod[] =
    "{metadata: {labels: {app: llama}}, spec: {containers: [{name: c, image: gpu, resources: "
    "{limits: {nvidia.com/gpu: 1}}}]}}";
constexpr char kPlainPod[] =
    "{metadata: {labels: {app: llama}}, spec: {containers: [{name: c, image: plain}]}}";

struct Case {
  std::string name;
  std::string workload;
  WorkloadKind kind;
  Labels selector;
  int64_t replicas;
  std::string image;  // of the template; "": it has none
  bool asks;          // requests an accelerator
};

std::vector<Case> Cases() {
  const std::string gpu = kGpuPod;
  const std::string plain = kPlainPod;
  return {
      {"deployment",
       "{kind: Deployment, metadata: {name: a}, spec: {replicas: 3, selector: {matchLabels: {app: "
       "llama}}, template: " +
           gpu + "}}",
       WorkloadKind::kDeployment,
       {{"app", "llama"}},
       3,
       "gpu",
       true},
      {"stateful_set_defaults",
       "{kind: StatefulSet, metadata: {name: a}, spec: {selector: {matchLabels: {app: x}}, "
       "template: " +
           plain + "}}",
       WorkloadKind::kStatefulSet,
       {{"app", "x"}},
       1,
       "plain",
       false},
      {"job",
       "{kind: Job, metadata: {name: a}, spec: {parallelism: 2, selector: {matchLabels: {u: j}}, "
       "template: " +
           plain + "}}",
       WorkloadKind::kJob,
       {{"u", "j"}},
       2,
       "plain",
       false},
      {"cron_job",
       "{kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: {template: " + gpu + "}}}}",
       WorkloadKind::kCronJob,
       {{"app", "llama"}},
       1,
       "gpu",
       true},
      {"cron_job_without_labels",
       "{kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: {template: {spec: "
       "{containers: [{image: x}]}}}}}}",
       WorkloadKind::kCronJob,
       {},
       1,
       "x",
       false},
      {"rollout",
       "{kind: Rollout, metadata: {name: a}, spec: {replicas: 0, selector: {matchLabels: {app: "
       "x}}, template: " +
           plain + "}}",
       WorkloadKind::kDeployment,
       {{"app", "x"}},
       0,
       "plain",
       false},
      {"leader_worker_set",
       "{kind: LeaderWorkerSet, metadata: {name: a}, spec: {replicas: 2, leaderWorkerTemplate: "
       "{leaderTemplate: " +
           plain + ", workerTemplate: " + gpu + "}}}",
       WorkloadKind::kGroup,
       {{"leaderworkerset.sigs.k8s.io/name", "a"}},
       2,
       "gpu",
       true},
      {"leader_worker_set_of_leaders",
       "{kind: LeaderWorkerSet, metadata: {name: a}, spec: {leaderWorkerTemplate: "
       "{leaderTemplate: " +
           plain + "}}}",
       WorkloadKind::kGroup,
       {{"leaderworkerset.sigs.k8s.io/name", "a"}},
       1,
       "plain",
       false},
      {"ray_cluster_takes_the_group_with_accelerators",
       "{kind: RayCluster, metadata: {name: a}, spec: {headGroupSpec: {template: " + plain +
           "}, workerGroupSpecs: [{replicas: 1, template: " + plain +
           "}, {replicas: 4, template: " + gpu + "}]}}",
       WorkloadKind::kGroup,
       {{"ray.io/cluster", "a"}, {"ray.io/node-type", "worker"}},
       5,
       "gpu",
       true},
      {"ray_cluster_of_a_head",
       "{kind: RayCluster, metadata: {name: a}, spec: {headGroupSpec: {template: " + gpu + "}}}",
       WorkloadKind::kGroup,
       {{"ray.io/cluster", "a"}, {"ray.io/node-type", "head"}},
       1,
       "gpu",
       true},
      {"inference_service",
       "{kind: InferenceService, metadata: {name: a}, spec: {predictor: {model: {modelFormat: "
       "{name: hf}, resources: {limits: {amd.com/gpu: 1}}}}}}",
       WorkloadKind::kSelector,
       {{"serving.kserve.io/inferenceservice", "a"}, {"component", "predictor"}},
       1,
       "",
       true},
      {"llm_inference_service",
       "{kind: LLMInferenceService, metadata: {name: a}, spec: {template: {containers: [{name: "
       "main, resources: {limits: {aws.amazon.com/neuron: 1}}}]}}}",
       WorkloadKind::kSelector,
       {{"app.kubernetes.io/name", "a"},
        {"app.kubernetes.io/part-of", "llminferenceservice"},
        {"kserve.io/component", "workload"}},
       1,
       "",
       true},
  };
}

TEST(WorkloadShape, EachKindHasItsShape) {
  for (const Case& each : Cases()) {
    SCOPED_TRACE(each.name);
    const Json workload = Yaml(each.workload);
    const WorkloadShape shape = ShapeOf(workload);
    EXPECT_EQ(shape.kind, each.kind);
    EXPECT_EQ(shape.selector, each.selector);
    EXPECT_EQ(shape.replicas, each.replicas);
    EXPECT_EQ(ImageOf(shape), each.image);
    EXPECT_EQ(RequestsAccelerator(workload), each.asks);
  }
}

TEST(WorkloadShape, ReplicasOfRayGroupsDoNotOverflow) {
  const auto replicas_of = [](const std::string& groups) {
    return ShapeOf(Yaml("{kind: RayCluster, metadata: {name: a}, spec: {workerGroupSpecs: [" +
                        groups + "]}}"))
        .replicas;
  };
  EXPECT_EQ(replicas_of("{replicas: 9223372036854775807}, {replicas: 1}"), int64_t{INT32_MAX} + 1);
  EXPECT_EQ(replicas_of("{replicas: -5}, {replicas: 2}, {}"), 3);
}

TEST(WorkloadShape, PrefillPodsOfAnInferenceServiceRequestAccelerators) {
  const std::string gpu = "{containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}";
  for (const std::string role : {"template", "worker"}) {
    const Json workload = Yaml(
        "{kind: LLMInferenceService, metadata: {name: a}, spec: {template: {containers: [{name: "
        "main}]}, prefill: {" +
        role + ": " + gpu + "}}}");
    EXPECT_TRUE(RequestsAccelerator(workload)) << role;
  }
}

TEST(WorkloadShape, ResourceClaimRequestsAccelerator) {
  const auto job = [](const std::string& resources) {
    return Yaml(
        "{kind: Job, metadata: {name: a}, spec: {template: {spec: {resourceClaims: [{name: gpu, "
        "resourceClaimTemplateName: one}], containers: [{name: main, resources: " +
        resources + "}]}}}}");
  };
  EXPECT_TRUE(RequestsAccelerator(job("{claims: [{name: gpu}]}")));
  EXPECT_FALSE(RequestsAccelerator(job("{limits: {cpu: 1}}"))) << "no container uses the claim";
}

TEST(WorkloadShape, RolloutUsesTemplateOfDeployment) {
  const Json rollout = Yaml(
      "{kind: Rollout, metadata: {name: a}, spec: {workloadRef: {apiVersion: apps/v1, kind: "
      "Deployment, name: lender}}}");
  EXPECT_EQ(ShapeOf(rollout).borrows_from, "lender");
  const Json odd =
      Yaml("{kind: Rollout, metadata: {name: a}, spec: {workloadRef: {kind: Pod, name: x}}}");
  EXPECT_EQ(ShapeOf(odd).borrows_from, "");
}

TEST(WorkloadShape, AnyTemplateWithLabelsMatches) {
  const Json groups = Yaml(
      "{kind: LeaderWorkerSet, metadata: {name: a}, spec: {leaderWorkerTemplate: {"
      "leaderTemplate: {metadata: {labels: {app: llama, role: leader}}}, "
      "workerTemplate: {metadata: {labels: {app: llama, role: worker}}}}}}");
  EXPECT_TRUE(MakesPodsWith(groups, {{"app", "llama"}}));
  EXPECT_TRUE(MakesPodsWith(groups, {{"role", "leader"}}));
  EXPECT_TRUE(MakesPodsWith(groups, {{"app", "llama"}, {"role", "worker"}}));
  EXPECT_FALSE(MakesPodsWith(groups, {{"app", "llama"}, {"role", "router"}}));
  EXPECT_FALSE(MakesPodsWith(Yaml("{kind: Job, spec: {template: 3}}"), {{"app", "llama"}}));
}

TEST(WorkloadShape, UnexpectedShapesReadAsAbsent) {
  for (const char* kind :
       {"Deployment", "StatefulSet", "Job", "CronJob", "Rollout", "LeaderWorkerSet", "RayCluster",
        "InferenceService", "LLMInferenceService"}) {
    for (const char* spec :
         {"null", "1", "[]", "{template: 1, jobTemplate: [], workerGroupSpecs: {}, predictor: 5}",
          "{template: {spec: 3}, workerGroupSpecs: [1, null], selector: [], replicas: x}",
          "{predictor: [], template: {spec: {containers: {a: 1}}}, leaderWorkerTemplate: 2}"}) {
      const Json workload =
          Yaml(std::string("{kind: ") + kind + ", metadata: {name: a}, spec: " + spec + "}");
      EXPECT_LE(ShapeOf(workload).replicas, 2) << kind << " " << spec;
      EXPECT_FALSE(RequestsAccelerator(workload)) << kind << " " << spec;
    }
  }
}

}  // namespace
}  // namespace cachewarm::workloads

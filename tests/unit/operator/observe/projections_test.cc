// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/projections.h"

#include <gtest/gtest.h>

#include "lib/api/kubernetes.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::observe {
namespace {

using codec::Json;
using op::testing::FromYaml;

Json FullPod() {
  return FromYaml(R"(
apiVersion: v1
kind: Pod
metadata:
  name: a
  namespace: default
  uid: u
  generateName: a-
  labels: {app: llama}
  annotations: {cachewarm.io/warmup: llama, other.io/big: xxxxxxxx}
  ownerReferences: [{kind: ReplicaSet, name: r, uid: ru, controller: true}]
  creationTimestamp: "2026-01-01T00:00:00Z"
spec:
  nodeName: node-a
  serviceAccountName: default
  affinity: {nodeAffinity: {}}
  tolerations: [{operator: Exists}]
  securityContext: {runAsUser: 7, fsGroup: 9}
  volumes:
  - {name: cachewarm, hostPath: {path: /var/lib/cachewarm/default/llama/u/u7}}
  - {name: token, projected: {}}
  containers:
  - name: server
    image: i
    command: [serve, --large, argument]
    env: [{name: SECRET, value: hush}]
    readinessProbe: {httpGet: {port: 80}}
    securityContext: {runAsUser: 8, privileged: false}
    resources: {requests: {cpu: 100m}}
status:
  phase: Running
  hostIP: 10.0.0.1
  conditions:
  - {type: Ready, status: "True", lastProbeTime: null, lastTransitionTime: "2026-01-01T00:00:09Z"}
  containerStatuses:
  - name: server
    ready: true
    restartCount: 0
    imageID: sha
    state: {running: {startedAt: "2026-01-01T00:00:02Z"}}
)");
}

TEST(ProjectPod, KeepsFieldsThatDecisionsRead) {
  Json pod = FullPod();
  ProjectPod(pod);
  const auto decoded = api::DecodePod(std::make_shared<const Json>(pod));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->node, "node-a");
  EXPECT_TRUE(decoded->ready);
  EXPECT_EQ(decoded->owner_kind, "ReplicaSet");
  EXPECT_EQ(decoded->requests.at("cpu"), 100);
  ASSERT_EQ(decoded->containers.size(), 1U);
  EXPECT_TRUE(decoded->containers[0].running);
  EXPECT_EQ(pod["spec"]["containers"][0]["securityContext"], Json({{"runAsUser", 8}}));
  EXPECT_TRUE(pod["spec"]["containers"][0].contains("readinessProbe"));
  EXPECT_EQ(pod["spec"]["volumes"].size(), 1U);
}

TEST(ProjectPod, KeepsFactorsOfAnInjectedPod) {
  Json pod = FullPod();
  ProjectPod(pod);
  EXPECT_EQ(pod["startedContainers"],
            FromYaml("[{name: server, command: [serve, --large, argument], "
                     "env: [{name: SECRET, value: hush}], imageID: sha}]"));
  EXPECT_FALSE(pod["spec"]["containers"][0].contains("env"))
      << "a template learnt from it has none";
}

TEST(ProjectPod, DropsEverythingElse) {
  Json pod = FullPod();
  pod["spec"]["volumes"].erase(0);
  const size_t before = pod.dump().size();
  ProjectPod(pod);
  for (const char* gone : {"hush", "--large", "imageID", "hostIP", "xxxxxxxx", "token", "fsGroup",
                           "serviceAccountName"}) {
    EXPECT_EQ(pod.dump().find(gone), std::string::npos) << gone;
  }
  EXPECT_LT(pod.dump().size(), before);
}

TEST(ProjectPod, KeepsFieldsForReleasingHeldPod) {
  Json pod = FullPod();
  pod["spec"].erase("nodeName");
  pod["spec"]["schedulingGates"] = {{{"name", "cachewarm.io/wait-for-cache"}}};
  ProjectPod(pod);
  EXPECT_TRUE(pod["spec"].contains("affinity"));
  EXPECT_TRUE(pod["spec"].contains("tolerations"));
  EXPECT_TRUE(pod["metadata"]["annotations"].contains("other.io/big"));
}

TEST(ProjectPod, KeepsRequiredNodeAffinityOfRunningPod) {
  Json pod = FullPod();
  const Json required = {{"nodeSelectorTerms", Json::array()}};
  pod["spec"]["affinity"] = {
      {"podAntiAffinity", {{"x", 1}}},
      {"nodeAffinity",
       {{"requiredDuringSchedulingIgnoredDuringExecution", required},
        {"preferredDuringSchedulingIgnoredDuringExecution", {{{"weight", 10}}}}}}};
  pod["spec"]["tolerations"] = {{{"key", "nvidia.com/gpu"}, {"operator", "Exists"}}};
  const Json tolerations = pod["spec"]["tolerations"];
  ProjectPod(pod);
  EXPECT_EQ(
      pod["spec"]["affinity"],
      Json({{"nodeAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", required}}}}));
  EXPECT_EQ(pod["spec"]["tolerations"], tolerations);
}

TEST(ProjectPod, KeepsFieldsThatExplainSkippedPod) {
  Json pod = FullPod();
  pod["spec"]["os"] = {{"name", "windows"}};
  pod["spec"]["containers"][0]["volumeMounts"] = FromYaml(R"(
- {name: cachewarm, mountPath: /var/cache/cachewarm}
- {name: token, mountPath: /var/run/token}
- {name: mine, mountPath: /var/cache/cachewarm/triton}
)");
  ProjectPod(pod);
  EXPECT_EQ(pod["spec"]["os"]["name"], "windows");
  const Json& mounts = pod["spec"]["containers"][0]["volumeMounts"];
  ASSERT_EQ(mounts.size(), 1U);
  EXPECT_EQ(mounts[0]["name"], "mine");
}

TEST(ProjectPod, KeepsRestartPolicyOtherThanAlways) {
  for (const char* policy : {"Never", "OnFailure", "Always"}) {
    Json pod = FullPod();
    pod["spec"]["restartPolicy"] = policy;
    ProjectPod(pod);
    EXPECT_EQ(pod["spec"].value("restartPolicy", "Always"), policy);
    EXPECT_EQ(pod["spec"].contains("restartPolicy"), std::string_view("Always") != policy);
  }
}

TEST(ProjectPod, AcceptsUnexpectedShapes) {
  for (const char* text :
       {"{}", "[]", "\"x\"", "{metadata: 1, spec: [], status: x}",
        "{spec: {containers: [1, null], volumes: {}}, status: {conditions: x}}"}) {
    Json odd = FromYaml(text);
    ProjectPod(odd);
    EXPECT_TRUE(odd.is_object()) << text;
  }
}

TEST(ProjectNode, HeartbeatsDoNotChangeIt) {
  Json first = op::testing::NodeObject("a", "u");
  first["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:00:00Z";
  first["status"]["images"] = {{{"names", {"x"}}}};
  Json second = first;
  second["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-01-01T00:05:00Z";
  ProjectNode(first);
  ProjectNode(second);
  EXPECT_EQ(first, second);
  EXPECT_FALSE(first["status"].contains("images"));
  const auto decoded = api::DecodeNode(first);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(decoded->ready);
  EXPECT_EQ(decoded->allocatable.at("cpu"), 8000);
}

TEST(ProjectNode, KeepsBootIdPrefix) {
  Json node = op::testing::NodeObject("a", "u");
  node["status"]["nodeInfo"]["bootID"] = "1f2e3d4c-1111-2222-3333-444455556666";
  ProjectNode(node);
  EXPECT_EQ(api::DecodeNode(node)->boot_id, "1f2e3d4c");
}

TEST(ProjectNode, KeepsReadyTime) {
  Json node = op::testing::NodeObject("a", "u");
  node["status"]["conditions"] = FromYaml(R"(
- {type: Ready, status: "True", reason: KubeletReady, lastTransitionTime: "2026-01-01T00:00:07Z"}
- {type: DiskPressure, status: "False", lastTransitionTime: "2026-01-01T00:00:07Z"}
)");
  ProjectNode(node);
  EXPECT_EQ(node["status"]["conditions"], FromYaml(R"(
- {type: Ready, status: "True", lastTransitionTime: "2026-01-01T00:00:07Z"}
- {type: DiskPressure, status: "False"}
)"));
}

TEST(ProjectWorkload, KeepsWholeTemplate) {
  Json deployment = op::testing::DeploymentObject("llama");
  const Json pod_template = deployment["spec"]["template"];
  deployment["status"]["collisionCount"] = 3;
  ProjectWorkload(deployment);
  EXPECT_EQ(deployment["spec"]["template"], pod_template);
  EXPECT_FALSE(deployment["status"].contains("collisionCount"));
  EXPECT_EQ(deployment["status"]["replicas"], 2);
}

TEST(ProjectJob, KeepsBuilderJobsAndTemplatesOfFinishedJobs) {
  Json job = FromYaml(R"(
metadata: {name: j, labels: {cachewarm.io/builder-warmup: u}}
spec: {backoffLimit: 0, template: {spec: {}}}
status: {completionTime: "2026-01-01T00:00:00Z"}
)");
  Json builder = job;
  ProjectJob(builder);
  EXPECT_TRUE(builder["spec"].contains("backoffLimit"));
  job["metadata"].erase("labels");
  ProjectJob(job);
  EXPECT_FALSE(job["spec"].contains("backoffLimit"));
  EXPECT_TRUE(job["spec"].contains("template"));
}

TEST(ProjectNamespace, KeepsLabels) {
  Json ns = FromYaml("{metadata: {name: a, labels: {x: y}}, spec: {finalizers: [k]}}");
  ProjectNamespace(ns);
  EXPECT_EQ(ns, FromYaml("{metadata: {name: a, labels: {x: y}}}"));
}

TEST(ProjectResourceSlice, KeepsTheComparedAttributes) {
  Json slice = FromYaml(R"(
metadata: {name: s, managedFields: [1]}
spec:
  driver: gpu.nvidia.com
  nodeName: a
  pool: {name: a, generation: 2, resourceSliceCount: 1}
  sharedCounters: [x]
  devices:
  - name: gpu-0
    attributes:
      productName: {string: L4}
      cudaComputeCapability: {version: 8.9.0}
      uuid: {string: u}
    capacity: {memory: {value: 1Gi}}
  - name: broken
    attributes: 7
)");
  ProjectResourceSlice(slice);
  EXPECT_EQ(slice, FromYaml(R"(
metadata: {name: s}
spec:
  driver: gpu.nvidia.com
  nodeName: a
  pool: {name: a, generation: 2}
  devices:
  - attributes: {productName: {string: L4}, cudaComputeCapability: {version: 8.9.0}}
  - attributes: 7
)"));
}

TEST(ProjectOwn, DropsOnlyBookkeeping) {
  Json warmup = FromYaml(R"(
metadata:
  name: a
  managedFields: [1]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: big, mine: x}
spec: {paused: true}
)");
  ProjectOwn(warmup);
  EXPECT_EQ(warmup,
            FromYaml("{metadata: {name: a, annotations: {mine: x}}, spec: {paused: true}}"));
}

}  // namespace
}  // namespace cachewarm::observe

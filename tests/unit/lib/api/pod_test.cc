// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/api/kubernetes.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::api {
namespace {

using codec::Json;

Json RunningPod() {
  return *codec::ParseJson(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "llama-6f9c-x2", "namespace": "default", "uid": "77aa",
      "labels": {"app": "llama", "pod-template-hash": "6f9c"},
      "annotations": {"cachewarm.io/warmup": "llama"},
      "ownerReferences": [{"kind": "ReplicaSet", "name": "llama-6f9c", "uid": "2",
                           "controller": true}]},
    "spec": {"nodeName": "node-a", "nodeSelector": {"pool": "gpu"},
      "containers": [
        {"name": "server", "resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "8"},
                                         "requests": {"cpu": "4", "memory": "16Gi"}}},
        {"name": "sidecar", "resources": {"requests": {"cpu": "100m"}}}]},
    "status": {"phase": "Running",
      "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T08:01:30Z"},
        {"type": "ContainersReady", "status": "True",
         "lastTransitionTime": "2026-11-21T08:01:29Z"},
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-21T08:01:00Z"}],
      "containerStatuses": [
        {"name": "server", "ready": true, "restartCount": 0,
         "state": {"running": {"startedAt": "2026-11-21T08:01:02Z"}}},
        {"name": "sidecar", "ready": true, "restartCount": 1,
         "state": {"running": {"startedAt": "2026-11-21T08:01:05Z"}},
         "lastState": {"terminated": {"exitCode": 2, "reason": "Error"}}}]}})");
}

absl::StatusOr<Pod> Read(Json json) {
  return DecodePod(std::make_shared<const Json>(std::move(json)));
}

Json WithSpec(const char* spec) {
  return {{"metadata", {{"name", "p"}}}, {"spec", *codec::ParseJson(spec)}};
}

TEST(Pod, HasItsControllingOwnerOnly) {
  const auto pod = Read(*codec::ParseJson(R"({"metadata": {"name": "p", "ownerReferences": [
      {"kind": "ReplicaSet", "name": "llama-6f9c", "uid": "2", "controller": true},
      {"kind": "ConfigMap", "name": "other", "uid": "1"}]}})"));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->owner_kind, "ReplicaSet");
  EXPECT_EQ(pod->owner_name, "llama-6f9c");
}

TEST(Pod, DecodesAKubeletsObject) {
  const auto pod = Read(RunningPod());
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->owner_kind, "ReplicaSet");
  EXPECT_EQ(pod->node, "node-a");
  EXPECT_EQ(pod->node_selector.at("pool"), "gpu");
  EXPECT_TRUE(pod->gates.empty());
  EXPECT_EQ(pod->phase, "Running");
  EXPECT_TRUE(pod->ready);
  EXPECT_TRUE(pod->containers_ready);
  EXPECT_EQ(FormatTime(pod->ready_time), "2026-11-21T08:01:30Z");
  EXPECT_EQ(FormatTime(pod->containers_ready_time), "2026-11-21T08:01:29Z");
  ASSERT_EQ(pod->containers.size(), 2U);
  EXPECT_TRUE(pod->containers[0].running);
  EXPECT_EQ(FormatTime(pod->containers[0].started_time), "2026-11-21T08:01:02Z");
  EXPECT_EQ(pod->containers[1].restarts, 1);
  EXPECT_EQ(pod->containers[1].message, "");
  EXPECT_EQ((*pod->object)["metadata"]["uid"], "77aa");
}

TEST(Pod, HeldPodHasItsGatesAndNothingElse) {
  const auto pod = Read(WithSpec(R"({"schedulingGates": [{"name": "kueue.x-k8s.io/admission"},
    {"name": "cachewarm.io/wait-for-cache"}], "containers": [{"name": "c"}]})"));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->gates,
            (std::vector<std::string>{"kueue.x-k8s.io/admission", "cachewarm.io/wait-for-cache"}));
  EXPECT_EQ(pod->node, "");
  EXPECT_FALSE(pod->ready);
  EXPECT_EQ(pod->ready_time, WallTime{});
  EXPECT_TRUE(pod->containers.empty());
}

TEST(Pod, NotReadyHasNoReadyTime) {
  Json json = RunningPod();
  json["status"]["conditions"][0]["status"] = "False";
  const auto pod = Read(json);
  EXPECT_FALSE(pod->ready);
  EXPECT_EQ(pod->ready_time, WallTime{});
  EXPECT_TRUE(pod->containers_ready);
}

TEST(Pod, EachContainerStateIsDecoded) {
  struct Case {
    const char* status;
    bool running;
    bool terminated;
    int exit_code;
    std::string message;
  };
  const Case cases[] = {
      {R"({"state": {"waiting": {"reason": "ContainerCreating"}}})", false, false, 0,
       "ContainerCreating"},
      {R"({"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}})",
       false, false, 0, "ImagePullBackOff: no such image"},
      {R"({"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}})", false, true, 0,
       "exit 0: Completed"},
      {R"({"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}})", false, true, 137,
       "exit 137: OOMKilled"},
      {R"({"state": {"waiting": {"reason": "CrashLoopBackOff"}},
           "lastState": {"terminated": {"exitCode": 1, "reason": "Error",
                                        "message": "CUDA out of memory"}}})",
       false, false, 0, "CrashLoopBackOff: exit 1: Error: CUDA out of memory"},
      {R"({"state": {"running": {"startedAt": "2026-11-21T08:01:02Z"}},
           "lastState": {"terminated": {"exitCode": 1}}})",
       true, false, 0, ""},
      {R"({})", false, false, 0, ""},
  };
  for (const Case& each : cases) {
    Json json = RunningPod();
    json["status"]["containerStatuses"] = Json::array({*codec::ParseJson(each.status)});
    const auto pod = Read(json);
    ASSERT_TRUE(pod.ok()) << pod.status();
    const ContainerStatus& container = pod->containers[0];
    EXPECT_EQ(container.running, each.running) << each.status;
    EXPECT_EQ(container.terminated, each.terminated) << each.status;
    EXPECT_EQ(container.exit_code, each.exit_code) << each.status;
    EXPECT_EQ(container.message, each.message);
  }
}

TEST(Pod, TimesOfATerminatedContainerAreDecoded) {
  Json json = RunningPod();
  json["status"]["containerStatuses"] =
      Json::array({*codec::ParseJson(R"({"state": {"terminated": {"exitCode": 0,
        "startedAt": "2026-11-21T08:01:02Z", "finishedAt": "2026-11-21T08:02:02Z"}}})")});
  const auto pod = Read(json);
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(FormatTime(pod->containers[0].started_time), "2026-11-21T08:01:02Z");
  EXPECT_EQ(FormatTime(pod->containers[0].ended_time), "2026-11-21T08:02:02Z");
}

TEST(Pod, MayEndUnlessItsContainersAlwaysRestart) {
  for (const char* policy : {"Never", "OnFailure", "Always", ""}) {
    Json json = RunningPod();
    if (policy[0] != '\0') {
      json["spec"]["restartPolicy"] = policy;
    }
    const auto pod = Read(json);
    ASSERT_TRUE(pod.ok()) << pod.status();
    const bool always = std::string_view(policy).empty() || std::string_view(policy) == "Always";
    EXPECT_EQ(pod->may_end, !always) << policy;
  }
}

TEST(Pod, HasEndedOnlyWhenSucceededOrFailed) {
  for (const char* phase : {"Pending", "Running", "Unknown", "", "Succeeded", "Failed"}) {
    Json json = RunningPod();
    json["status"]["phase"] = phase;
    const auto pod = Read(json);
    ASSERT_TRUE(pod.ok()) << pod.status();
    const std::string_view word = phase;
    EXPECT_EQ(HasEnded(*pod), word == "Succeeded" || word == "Failed") << phase;
  }
}

TEST(Pod, RequestsAreSummedAsTheSchedulerDoes) {
  struct Case {
    const char* name;
    const char* spec;
    Resources requests;
  };
  const Case cases[] = {
      {"nothing asked", R"({"containers": [{"name": "c"}]})", {}},
      {"containers add up",
       R"({"containers": [
          {"resources": {"requests": {"cpu": "1", "memory": "1Ki"}}},
          {"resources": {"requests": {"cpu": "500m"}}}]})",
       {{"cpu", 1500}, {"memory", 1024}}},
      {"a limit stands for a missing request",
       R"({"containers": [
          {"resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "8"},
                         "requests": {"cpu": "4"}}}]})",
       {{"cpu", 4000}, {"nvidia.com/gpu", 2}}},
      {"the largest init container counts when it is more",
       R"({
          "initContainers": [{"resources": {"requests": {"cpu": "3"}}},
                             {"resources": {"requests": {"cpu": "2", "memory": "4Ki"}}}],
          "containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Ki"}}}]})",
       {{"cpu", 3000}, {"memory", 4096}}},
      {"a sidecar runs beside everything after it",
       R"({
          "initContainers": [
            {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
            {"resources": {"requests": {"cpu": "3"}}}],
          "containers": [{"resources": {"requests": {"cpu": "2"}}}]})",
       {{"cpu", 4000}}},
      {"overhead is added, the pod's own request stands",
       R"({
          "overhead": {"cpu": "250m"}, "resources": {"requests": {"cpu": "2"}},
          "containers": [{"resources": {"requests": {"cpu": "1"}}}]})",
       {{"cpu", 2250}}},
  };
  for (const Case& each : cases) {
    const auto pod = Read(WithSpec(each.spec));
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(pod->requests, each.requests) << each.name;
  }
}

TEST(Pod, WrongTypesAreNamedByTheirPath) {
  EXPECT_EQ(DecodePod(nullptr).status().message(), "pod: expected an object");
  Json json = RunningPod();
  json["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] = 5;
  EXPECT_EQ(Read(json).status().message(),
            "status.containerStatuses[0].state.running.startedAt: expected a string");
  json = RunningPod();
  json["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "four";
  EXPECT_EQ(Read(json).status().message(),
            "spec.containers[0].resources.requests.cpu: \"four\" is not a Kubernetes quantity such "
            "as 500m, 4, 16Gi or 1e9");
}

}  // namespace
}  // namespace cachewarm::api

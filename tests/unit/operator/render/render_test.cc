// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/held.h"
#include "operator/render/applied.h"
#include "operator/render/apply_overrides.h"
#include "operator/render/dry_run_pod.h"
#include "operator/render/injection.h"
#include "operator/render/job.h"
#include "tests/fakes/wrong_types.h"

namespace cachewarm::render {
namespace {

using codec::Json;

Json Parse(const std::string& text) {
  return codec::ParseJson(text).value();
}

const std::string kKey(64, 'a');

api::CacheWarmup Warmup() {
  api::CacheWarmup warmup;
  warmup.ns = "models";
  warmup.name = "llama";
  warmup.uid = "7d0f";
  warmup.resource_version = "42";
  return warmup;
}

CacheMount MountOf() {
  return {.container = "server",
          .host_path = "/var/lib/cachewarm/models/llama/7d0f/image",
          .env = {{"A_DIR", "/var/cache/cachewarm/a"}, {"B_DIR", "/var/cache/cachewarm/b"}}};
}

// ---- injection ----------------------------------------------------------------------------------

Json SpecOf() {
  return Parse(R"({"securityContext":{"runAsUser":5},"containers":[
    {"name":"proxy","securityContext":{"runAsUser":7}},
    {"name":"server","image":"s:1","env":[{"name":"A_DIR","value":"/mine"}],
     "volumeMounts":[{"name":"w","mountPath":"/w"}]}],
    "volumes":[{"name":"w","emptyDir":{}}]})");
}

TEST(Injection, RunAsPrefersContainerThenPodThenImage) {
  EXPECT_EQ(RunAs(SpecOf(), "proxy"), "u7");
  EXPECT_EQ(RunAs(SpecOf(), "server"), "u5");
  EXPECT_EQ(RunAs(Parse(R"({"containers":[{"name":"server"}]})"), "server"), "image");
}

TEST(Injection, AddsVolumeMountAndVariablesToTheOneContainer) {
  Json spec = SpecOf();
  AddMount(spec, MountOf());
  EXPECT_EQ(spec["volumes"].size(), 2U);
  EXPECT_EQ(spec["volumes"][1]["hostPath"]["type"], "DirectoryOrCreate");
  EXPECT_EQ(spec["containers"][1]["volumeMounts"][1]["mountPath"], "/var/cache/cachewarm");
  EXPECT_EQ(spec["containers"][0], SpecOf()["containers"][0]) << "other containers are unchanged";
}

TEST(Injection, UserVariableIsKept) {
  Json spec = SpecOf();
  AddMount(spec, MountOf());
  const Json& env = spec["containers"][1]["env"];
  ASSERT_EQ(env.size(), 2U);
  EXPECT_EQ(env[0]["value"], "/mine");
  EXPECT_EQ(env[1]["name"], "B_DIR");
}

TEST(Injection, IsIdempotent) {
  Json once = SpecOf();
  AddMount(once, MountOf());
  Json twice = once;
  AddMount(twice, MountOf());
  EXPECT_EQ(once, twice);
}

TEST(Injection, AllowsAutoscalerToEvict) {
  Json metadata = Json::object();
  AddEvictionAnnotation(metadata);
  const char* name = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";
  EXPECT_EQ(metadata["annotations"][name], "cachewarm");
  metadata["annotations"][name] = "scratch";
  AddEvictionAnnotation(metadata);
  AddEvictionAnnotation(metadata);
  EXPECT_EQ(metadata["annotations"][name], "scratch,cachewarm");
}

// ---- builder Job --------------------------------------------------------------------------------

Json JobFor(const Json& pod_template, int attempt = 1) {
  const api::CacheWarmup warmup = Warmup();
  return BuilderJob({.warmup = warmup,
                     .pod_template = pod_template,
                     .key = kKey,
                     .attempt = attempt,
                     .mount = MountOf(),
                     .hostnames = {"n1", "n2"},
                     .label_keys = {"role"},
                     .priority_class = "cachewarm-builder"});
}

Json Template() {
  return {{"metadata",
           {{"labels", {{"app", "llama"}, {"role", "serve"}, {"team", "x"}}},
            {"annotations", {{"sidecar", "no"}}}}},
          {"spec", SpecOf()}};
}

// A CacheWarmup's spec.template keeps unknown fields, so its types are unchecked.
TEST(Job, WrongTypesInTemplateDoNotCrash) {
  Json whole = Template();
  whole["spec"]["affinity"] = Parse(R"({
      "nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
          {"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}]},
        "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{}}]}})");
  whole["spec"]["volumes"] = Parse(R"([{"name":"a","persistentVolumeClaim":{"claimName":"c"}}])");
  whole["spec"]["initContainers"] = Parse(R"([{"name":"i","image":"j","env":[
      {"name":"A","valueFrom":{"fieldRef":{"fieldPath":"x"}}}],"ports":[{"hostPort":1}]}])");
  whole["spec"]["securityContext"] = {{"runAsUser", 1000}};
  const std::vector<Json> wrong = fakes::OfWrongTypes(whole);
  ASSERT_GT(wrong.size(), 500U);
  const api::CacheWarmup warmup = Warmup();
  const api::Overrides overrides{.command = {"x"},
                                 .env = {{"A", "b"}},
                                 .tolerations = {{.key = "k"}},
                                 .node_selector = {{"l", "v"}},
                                 .resources = {{.container = "proxy", .limits = {{"a/b", "0"}}}}};
  for (const Json& each : wrong) {
    EXPECT_NO_THROW(JobFor(each)) << each;
    EXPECT_NO_THROW(TemplateOf(each, "uid")) << each;
    EXPECT_NO_THROW(MakeDryRunPods({.warmup = warmup, .pod_template = each, .mount = MountOf()}))
        << each;
    EXPECT_NO_THROW(ApplyOverrides(each, overrides, "server")) << each;
  }
}

TEST(Job, RunsOnceWithoutRestartOrDeadline) {
  const Json job = JobFor(Template());
  EXPECT_EQ(job["spec"]["backoffLimit"], 0);
  EXPECT_EQ(job["spec"]["parallelism"], 1);
  EXPECT_EQ(job["spec"]["template"]["spec"]["restartPolicy"], "Never");
  EXPECT_FALSE(job["spec"].contains("activeDeadlineSeconds"));
  EXPECT_FALSE(job["spec"].contains("ttlSecondsAfterFinished"));
}

TEST(Job, GetsNoTrafficAndNoSelectedLabels) {
  const Json pod = JobFor(Template())["spec"]["template"];
  EXPECT_EQ(pod["spec"]["readinessGates"][0]["conditionType"], "cachewarm.io/serving");
  const Json& labels = pod["metadata"]["labels"];
  EXPECT_FALSE(labels.contains("app"));
  EXPECT_FALSE(labels.contains("role"));
  EXPECT_EQ(labels["team"], "x");
  EXPECT_EQ(labels["cachewarm.io/builder-warmup"], "7d0f");
}

TEST(Job, IsOwnedByTheWarmupAndNamedAfterItsKey) {
  const Json job = JobFor(Template(), 3);
  EXPECT_EQ(job["metadata"]["name"], "llama-aaaaaaaa-3");
  EXPECT_EQ(job["metadata"]["namespace"], "models");
  EXPECT_EQ(job["metadata"]["ownerReferences"][0]["uid"], "7d0f");
}

TEST(Job, MountsCacheLikeThePolicy) {
  Json pod = JobFor(Template())["spec"]["template"]["spec"];
  EXPECT_EQ(pod["volumes"][1]["hostPath"]["path"], MountOf().host_path);
  EXPECT_EQ(pod["containers"][1]["env"].size(), 2U);
  EXPECT_EQ(pod["priorityClassName"], "cachewarm-builder");
  const Json& terms = pod["affinity"]["nodeAffinity"]
                         ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  EXPECT_EQ(terms[0]["matchExpressions"][0]["values"], Json::array({"n1", "n2"}));
}

TEST(Job, DropsFieldsThatTieItToTheWorkload) {
  Json pod_template = Template();
  for (const char* member : {"activeDeadlineSeconds", "hostname", "nodeName", "preemptionPolicy",
                             "priority", "schedulingGates", "subdomain"}) {
    pod_template["spec"][member] = 1;
  }
  const Json pod = JobFor(pod_template)["spec"]["template"]["spec"];
  for (const char* member : {"activeDeadlineSeconds", "hostname", "nodeName", "preemptionPolicy",
                             "priority", "schedulingGates", "subdomain"}) {
    EXPECT_FALSE(pod.contains(member)) << member;
  }
}

TEST(Job, PodHasShortGracePeriod) {
  const auto grace = [](const Json& pod_template) {
    return JobFor(pod_template)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"];
  };
  Json pod_template = Template();
  EXPECT_EQ(grace(pod_template), 5) << "the API's default is 30";
  pod_template["spec"]["terminationGracePeriodSeconds"] = 600;
  EXPECT_EQ(grace(pod_template), 5);
  pod_template["spec"]["terminationGracePeriodSeconds"] = 1;
  EXPECT_EQ(grace(pod_template), 1);
}

TEST(Job, NameIsDnsLabelOfAtMost63Bytes) {
  const std::string name = BuilderJobName(std::string(80, 'x') + ".y", kKey, 12);
  EXPECT_EQ(name.size(), 63U);
  EXPECT_TRUE(name.ends_with("-aaaaaaaa-12"));
  EXPECT_EQ(BuilderJobName("a.b", kKey, 1), "a-b-aaaaaaaa-1");
  const std::string proof = ProofJobName(std::string(80, 'x') + ".y", kKey, 12);
  EXPECT_EQ(proof.size(), 63U);
  EXPECT_TRUE(proof.ends_with("-aaaaaaaa-12-proof"));
  EXPECT_EQ(BuilderKeyLabelValue(kKey).size(), 32U);
}

TEST(Job, ProofSetsStrictVariablesAlsoOverThoseOfTheTemplate) {
  const api::CacheWarmup warmup = Warmup();
  Json pod_template = Template();
  Json& server = *codec::Named(pod_template["spec"]["containers"], "server");
  server["env"] =
      Parse(R"([{"name":"STRICT","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}},
                            {"name":"MODEL","value":"llama"}])");
  BuilderJobSpec spec{.warmup = warmup,
                      .pod_template = pod_template,
                      .key = kKey,
                      .attempt = 3,
                      .mount = MountOf(),
                      .hostnames = {"n1"}};
  const auto env_of = [](const Json& job) {
    std::map<std::string, Json> out;
    const Json& containers = codec::ListAt(job, {"spec", "template", "spec", "containers"});
    for (const Json& variable : (*codec::Named(containers, "server"))["env"]) {
      EXPECT_TRUE(out.emplace(variable["name"], variable).second) << variable;
    }
    return out;
  };
  const Json build = BuilderJob(spec);
  EXPECT_TRUE(env_of(build).at("STRICT").contains("valueFrom"));
  EXPECT_FALSE(build["metadata"]["labels"].contains(std::string(api::kBuilderProofLabel)));
  spec.strict_env = {{.name = "STRICT", .value = "1"}, {.name = "TOO", .value = "yes"}};
  const Json proof = BuilderJob(spec);
  EXPECT_EQ(env_of(proof).at("STRICT"), Parse(R"({"name":"STRICT","value":"1"})"));
  EXPECT_EQ(env_of(proof).at("TOO")["value"], "yes");
  EXPECT_EQ(env_of(proof).at("MODEL")["value"], "llama");
  EXPECT_EQ(proof["metadata"]["name"], BuilderJobName(warmup.name, kKey, 3) + "-proof");
  for (const Json* labels :
       {&proof["metadata"]["labels"], &proof["spec"]["template"]["metadata"]["labels"]}) {
    EXPECT_EQ((*labels)[std::string(api::kBuilderProofLabel)], "true");
  }
}

TEST(Job, TerminationMessageFallsBackToLogs) {
  const api::CacheWarmup warmup = Warmup();
  Json pod_template = Template();
  const BuilderJobSpec spec{.warmup = warmup,
                            .pod_template = pod_template,
                            .key = std::string(64, 'a'),
                            .mount = MountOf()};
  const auto policy = [&] {
    const Json job = BuilderJob(spec);
    return codec::TextAt(
        *codec::Named(codec::ListAt(job, {"spec", "template", "spec", "containers"}), "server"),
        {"terminationMessagePolicy"});
  };
  EXPECT_EQ(policy(), "FallbackToLogsOnError");
  codec::Named(pod_template["spec"]["containers"], "server")
      ->emplace("terminationMessagePolicy", "File");
  EXPECT_EQ(policy(), "FallbackToLogsOnError")
      << "the API server writes its default into templates";
}

// ---- dry run and learnt templates ---------------------------------------------------------------

TEST(AdmissionDryRun, OnlyInjectedPodHasTheCache) {
  const api::CacheWarmup warmup = Warmup();
  const Json pod_template = Template();
  const DryRunPods pods =
      MakeDryRunPods({.warmup = warmup, .pod_template = pod_template, .mount = MountOf()});
  EXPECT_EQ((*pods.unmodified)["spec"], pod_template["spec"]);
  EXPECT_EQ((*pods.unmodified)["metadata"]["annotations"]["cachewarm.io/warmup"], "-");
  EXPECT_EQ((*pods.injected)["metadata"]["annotations"]["cachewarm.io/warmup"], "llama");
  EXPECT_EQ((*pods.injected)["spec"]["schedulingGates"],
            Parse(R"([{"name":"cachewarm.io/wait-for-cache"}])"));
  EXPECT_EQ((*pods.injected)["metadata"]["labels"], pod_template["metadata"]["labels"]);
  EXPECT_TRUE((*pods.unmodified)["metadata"].contains("generateName"));
}

TEST(AdmissionDryRun, LearntTemplateHasNoAddedFields) {
  Json pod = {{"metadata", {{"labels", {{"app", "x"}, {"pod-template-hash", "h"}}}}},
              {"spec", SpecOf()}};
  AddMount(pod["spec"], MountOf());
  pod["spec"]["nodeName"] = "n1";
  pod["spec"]["schedulingGates"] = Parse(R"([{"name":"cachewarm.io/wait-for-cache"}])");
  pod["spec"]["volumes"].push_back({{"name", "kube-api-access-x"}, {"projected", Json::object()}});
  const Json learnt = TemplateOf(pod, "7d0f");
  EXPECT_EQ(learnt["metadata"]["labels"], Parse(R"({"app":"x"})"));
  EXPECT_EQ(learnt["spec"], SpecOf());
}

// ---- bodies -------------------------------------------------------------------------------------

TEST(Applied, StatusHasPlannedResourceVersion) {
  const Json body = StatusApply(Warmup(), {});
  EXPECT_EQ(body["metadata"]["resourceVersion"], "42");
  EXPECT_EQ(body["metadata"]["namespace"], "models");
  EXPECT_EQ(body["kind"], "CacheWarmup");
}

TEST(Applied, EmptySpecRemovesManagerFields) {
  EXPECT_FALSE(NodeCacheApply("n1", {}).contains("spec"));
  const Json body = NodeCacheApply("n1", {.warmups = {{.uid = "7d0f", .ns = "m", .name = "l"}}});
  EXPECT_EQ(body["spec"]["warmups"][0]["uid"], "7d0f");
  EXPECT_FALSE(body["metadata"].contains("resourceVersion")) << "each manager has its own entries";
}

TEST(Applied, NodeCacheIsOwnedByItsNode) {
  const Json body = NodeCacheBase("n1", "uid-n1", {});
  EXPECT_EQ(body["metadata"]["ownerReferences"][0]["uid"], "uid-n1");
  EXPECT_EQ(body["metadata"]["ownerReferences"][0]["kind"], "Node");
  EXPECT_FALSE(body.contains("spec"));
  const Json gpu = NodeCacheBase("n1", "uid-n1", {.devices = {{"nvidia.com/gpu", 8}}});
  EXPECT_EQ(gpu["spec"],
            Parse(R"({"node":{"devices":[{"resource":"nvidia.com/gpu","count":8}]}})"));
}

TEST(Applied, NullRemovesTheLabel) {
  EXPECT_EQ(InjectLabelPatch(true),
            Parse(R"({"metadata":{"labels":{"cachewarm.io/inject":"true"}}})"));
  EXPECT_TRUE(InjectLabelPatch(false)["metadata"]["labels"]["cachewarm.io/inject"].is_null());
}

}  // namespace
}  // namespace cachewarm::render

// SPDX-License-Identifier: Apache-2.0
#include "lib/api/cache_warmup.h"

#include <gtest/gtest.h>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "tests/unit/lib/api/samples.h"

namespace cachewarm::api {
namespace {

using codec::Json;

Json WithSpec(const std::string& spec) {
  Json object = MinimalWarmup();
  object["spec"] = *codec::ParseJson(spec);
  return object;
}

TEST(CacheWarmup, MetadataIsDecoded) {
  Json object = MinimalWarmup();
  object["metadata"]["resourceVersion"] = "42";
  object["metadata"]["generation"] = 3;
  object["metadata"]["labels"] = {{"cachewarm.io/inject", "true"}};
  object["metadata"]["annotations"] = {{"a", "b"}};
  object["metadata"]["deletionTimestamp"] = "2026-11-21T08:00:00Z";
  const auto warmup = DecodeCacheWarmup(object);
  ASSERT_TRUE(warmup.ok()) << warmup.status();
  EXPECT_EQ(warmup->ns, "default");
  EXPECT_EQ(warmup->name, "llama");
  EXPECT_EQ(warmup->uid, "0b9c");
  EXPECT_EQ(warmup->resource_version, "42");
  EXPECT_EQ(warmup->generation, 3);
  EXPECT_EQ(warmup->labels.at("cachewarm.io/inject"), "true");
  EXPECT_EQ(warmup->annotations.at("a"), "b");
  EXPECT_TRUE(warmup->deleting);
}

TEST(CacheWarmup, MinimalSpecHasTheDefaults) {
  const auto warmup = DecodeCacheWarmup(MinimalWarmup());
  ASSERT_TRUE(warmup.ok()) << warmup.status();
  EXPECT_EQ(warmup->spec.compile, CompileSpec{});
  EXPECT_EQ(warmup->spec.gate, GateSpec{});
  EXPECT_FALSE(warmup->spec.paused);
  EXPECT_FALSE(warmup->spec.workload_ref.has_value());
  EXPECT_EQ(warmup->spec.pod_template, nullptr);
  EXPECT_EQ(warmup->status, WarmupStatus{});
}

TEST(CacheWarmup, FullSpecReadsBackAsItWasWritten) {
  WarmupSpec full = FullWarmupSpec();
  full.workload_ref.reset();
  Json object = MinimalWarmup();
  object["spec"] = EncodeSpec(full);
  const auto warmup = DecodeCacheWarmup(object);
  ASSERT_TRUE(warmup.ok()) << warmup.status();
  EXPECT_EQ(warmup->spec.selector, full.selector);
  EXPECT_EQ(*warmup->spec.pod_template, *full.pod_template);
  EXPECT_EQ(warmup->spec.container, full.container);
  EXPECT_EQ(warmup->spec.caches, full.caches);
  EXPECT_EQ(warmup->spec.gpu_types, full.gpu_types);
  EXPECT_EQ(warmup->spec.node_selector, full.node_selector);
  EXPECT_EQ(warmup->spec.compile, full.compile);
  EXPECT_EQ(warmup->spec.gate, full.gate);
  EXPECT_TRUE(warmup->spec.paused);
  EXPECT_EQ(EncodeSpec(warmup->spec), object["spec"]);
}

TEST(CacheWarmup, EveryWayToSelectPodsIsAccepted) {
  const char* const specs[] = {
      R"({"workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}})",
      R"({"workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "llama.x"}})",
      R"({"workloadRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "llama"}})",
      R"({"selector": {"matchLabels": {"app": "llama"}}})",
      R"({"template": {"spec": {"containers": [{"name": "c"}]}}})",
      R"({"template": {"spec": {}}, "selector": {"matchLabels": {"app": "llama"}}})",
  };
  for (const char* spec : specs) {
    const auto warmup = DecodeCacheWarmup(WithSpec(spec));
    EXPECT_TRUE(warmup.ok()) << spec << ": " << warmup.status();
  }
}

struct Refusal {
  const char* spec;
  const char* message;
};

void ExpectRefused(const std::vector<Refusal>& cases) {
  for (const Refusal& each : cases) {
    const auto warmup = DecodeCacheWarmup(WithSpec(each.spec));
    EXPECT_EQ(warmup.status().code(), absl::StatusCode::kInvalidArgument) << each.spec;
    EXPECT_EQ(warmup.status().message(), each.message) << each.spec;
  }
}

TEST(CacheWarmup, NoneOrTwoWaysToSelectPodsAreRejected) {
  const char* const kinds =
      "spec.workloadRef.kind: expected one of Deployment (apps/v1), StatefulSet (apps/v1), Job "
      "(batch/v1), CronJob (batch/v1), Rollout (argoproj.io/v1alpha1), LeaderWorkerSet "
      "(leaderworkerset.x-k8s.io/v1), RayCluster (ray.io/v1), InferenceService "
      "(serving.kserve.io/v1beta1), LLMInferenceService (serving.kserve.io/v1alpha1); for pods of "
      "other owners use only spec.selector";
  ExpectRefused({
      {"{}", "spec.workloadRef: set one of workloadRef, template or selector"},
      {R"({"workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
           "selector": {"matchLabels": {"app": "llama"}}})",
       "spec.workloadRef: excludes template and selector: remove them, or remove workloadRef"},
      {R"({"workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
           "template": {}})",
       "spec.workloadRef: excludes template and selector: remove them, or remove workloadRef"},
      {R"({"workloadRef": {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "a"}})", kinds},
      {R"({"workloadRef": {"apiVersion": "batch/v1", "kind": "Deployment", "name": "a"}})", kinds},
      {R"({"workloadRef": {"kind": "Deployment", "name": "a"}})",
       "spec.workloadRef.apiVersion: is required"},
      {R"({"workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment"}})",
       "spec.workloadRef.name: is required"},
      {R"({"workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "../a"}})",
       "spec.workloadRef.name: expected a Kubernetes object name"},
      {R"({"selector": {"matchLabels": {}}})",
       "spec.selector.matchLabels: expected at least one label"},
      {R"({"selector": {}})", "spec.selector.matchLabels: is required"},
      {R"({"template": [], "selector": {"matchLabels": {"a": "b"}}})",
       "spec.template: expected an object: a pod template"},
  });
}

TEST(CacheWarmup, CachesThatAreNeitherPresetNorCustomAreRejected) {
  ExpectRefused({
      {R"({"caches": [{}]})", "spec.caches[0].name: is required"},
      {R"({"caches": [{"name": "vllm"}, {"name": "mine", "env": "A"}]})",
       "spec.caches[1].path: a custom cache needs both env and path"},
      {R"({"caches": [{"name": "mine", "path": "a"}]})",
       "spec.caches[0].env: a custom cache needs both env and path"},
      {R"({"caches": [{"name": "vllm", "include": ["*"]}]})",
       "spec.caches[0].include: is only for custom caches, which have env and path"},
      {R"({"caches": [{"name": "mine", "env": "A-B", "path": "a"}]})",
       "spec.caches[0].env: expected the name of an environment variable"},
      {R"({"caches": [{"name": "mine", "env": "A", "path": "../../etc"}]})",
       "spec.caches[0].path: expected a relative path of [A-Za-z0-9._-] segments other than . and "
       ".."},
      {R"({"caches": [{"name": "mine", "env": "A", "path": "/etc"}]})",
       "spec.caches[0].path: expected a relative path of [A-Za-z0-9._-] segments other than . and "
       ".."},
      {R"({"caches": [{"name": "Mine"}]})",
       "spec.caches[0].name: expected a DNS label of at most 63 characters"},
  });
}

TEST(CacheWarmup, OverridesOutsideTheListAreRejected) {
  const auto refused = [](const std::string& overrides, const std::string& message) {
    ExpectRefused({{(R"({"compile": {"overrides": )" + overrides + "}}").c_str(),
                    ("spec.compile.overrides" + message).c_str()}});
  };
  const std::string unknown =
      ": unknown field; expected one of command, args, env, tolerations, nodeSelector, resources";
  for (const char* field : {"image", "volumes", "securityContext", "serviceAccountName", "spec",
                            "metadata", "hostNetwork"}) {
    refused(R"({"command": ["a"], ")" + std::string(field) + R"(": {}})",
            "." + std::string(field) + unknown);
  }
  refused("[]", ": expected an object");
  refused("{}", ": is empty; set one of its fields, or remove it");
  refused(R"({"args": "a"})", ".args: expected a list of at most 64 strings");
  refused(R"({"args": [")" + std::string(4097, 'x') + R"("]})",
          ".args: has a string longer than 4096 bytes");
  refused(R"({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]})",
          ".env[0].valueFrom: unknown field; expected one of name, value");
  refused(R"({"env": [{"name": "A B"}]})",
          ".env[0].name: expected the name of an environment variable");
  refused(R"({"tolerations": [{"operator": "Exists"}]})", ".tolerations[0].key: is required");
  refused(R"({"tolerations": [{"key": "a", "operator": "Lt"}]})",
          ".tolerations[0].operator: expected one of Equal, Exists");
  refused(R"({"tolerations": [{"key": "a", "effect": "Never"}]})",
          ".tolerations[0].effect: expected one of NoSchedule, PreferNoSchedule, NoExecute");
  refused(R"({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]})",
          ".tolerations[0].value: must be empty if operator is Exists; remove value or set "
          "operator Equal");
  refused(R"({"tolerations": [{"key": "a", "tolerationSeconds": 1}]})",
          ".tolerations[0].tolerationSeconds: unknown field; expected one of key, operator, value, "
          "effect");
  refused(R"({"resources": [{"limits": {}}]})", ".resources[0].container: is required");
  refused(R"({"resources": [{"container": "a", "claims": []}]})",
          ".resources[0].claims: unknown field; expected one of container, requests, limits");
  for (const char* quantity : {"-1", R"("-1m")", R"("much")", "0.5", "true", "{}"}) {
    refused(
        R"({"resources": [{"container": "a", "limits": {"cpu": )" + std::string(quantity) + "}}]}",
        ".resources[0].limits.cpu: expected a quantity of at least 0, such as 500m, 4 or 16Gi");
  }
}

TEST(CacheWarmup, QuantitiesOfOverridesMayBeNumbers) {
  codec::Json object = MinimalWarmup();
  object["spec"]["compile"]["overrides"]["resources"] = {
      {{"container", "a"}, {"limits", {{"nvidia.com/gpu", 0}, {"memory", "1Gi"}}}}};
  const auto warmup = DecodeCacheWarmup(object);
  ASSERT_TRUE(warmup.ok()) << warmup.status();
  const std::map<std::string, std::string> limits = {{"nvidia.com/gpu", "0"}, {"memory", "1Gi"}};
  EXPECT_EQ(warmup->spec.compile.overrides->resources.at(0).limits, limits);
}

TEST(CacheWarmup, LimitsOutOfRangeAreRejected) {
  ExpectRefused({
      {R"({"compile": {"timeoutSeconds": 0}})",
       "spec.compile.timeoutSeconds: 0 is not between 1 and 86400"},
      {R"({"compile": {"pendingSeconds": 1.5}})",
       "spec.compile.pendingSeconds: expected an integer"},
      {R"({"compile": {"settleSeconds": 601}})",
       "spec.compile.settleSeconds: 601 is not between 1 and 600"},
      {R"({"compile": {"backoffLimit": -1}})",
       "spec.compile.backoffLimit: -1 is not between 0 and 10"},
      {R"({"compile": {"builder": "FirstPod", "overrides": {"args": ["a"]}}})",
       "spec.compile.builder: overrides and requests are for builder Jobs; set builder to Job or "
       "Auto"},
      {R"({"compile": {"builder": "FirstPod", "requests": [{"path": "/", "port": 1}]}})",
       "spec.compile.builder: overrides and requests are for builder Jobs; set builder to Job or "
       "Auto"},
      {R"({"compile": {"requests": [{"port": 1}]}})", "spec.compile.requests[0].path: is required"},
      {R"({"compile": {"requests": [{"path": "/"}]}})",
       "spec.compile.requests[0].port: is required"},
      {R"({"compile": {"requests": [{"path": "/", "port": 65536}]}})",
       "spec.compile.requests[0].port: 65536 is not between 1 and 65535"},
      {R"({"compile": {"requests": [{"path": "a", "port": 1}]}})",
       "spec.compile.requests[0].path: expected one leading slash, and printable "
       "ASCII without blanks after it"},
      {R"({"compile": {"requests": [{"path": "//other", "port": 1}]}})",
       "spec.compile.requests[0].path: expected one leading slash, and printable "
       "ASCII without blanks after it"},
      {R"({"compile": {"requests": [{"path": "/ HTTP/1.1\r\nA: b", "port": 1}]}})",
       "spec.compile.requests[0].path: expected one leading slash, and printable "
       "ASCII without blanks after it"},
      {R"({"compile": {"requests": [{"path": "/", "port": 1, "method": "CONNECT"}]}})",
       "spec.compile.requests[0].method: expected GET, HEAD, POST, PUT, PATCH or DELETE"},
      {R"({"compile": {"requests": [{"path": "/", "port": 1, "repeat": 101}]}})",
       "spec.compile.requests[0].repeat: 101 is not between 1 and 100"},
      {R"({"compile": {"requests": [{"path": "/", "port": 1, "headers": [{"name": "a:"}]}]}})",
       "spec.compile.requests[0].headers[0].name: expected letters, digits, - and _"},
      {R"({"compile": {"requests": [{"path": "/", "port": 1, )"
       R"("headers": [{"name": "a", "value": "\n"}]}]}})",
       "spec.compile.requests[0].headers[0].value: expected printable ASCII"},
      {R"({"compile": {"requests": [{"path": "/", "port": 1, "headers": [{"name": "Te"}]}]}})",
       "spec.compile.requests[0].headers[0].name: the operator sets this header itself; remove the "
       "header"},
      {R"({"compile": {"proof": "Engine"}})",
       "spec.compile.proof: only bundles of builder Jobs are proven; set builder to Job, or remove "
       "proof"},
      {R"({"compile": {"builder": "Job", "proof": "Always"}})",
       "spec.compile.proof: expected one of None, Engine"},
      {R"({"compile": {"builder": "Pod"}})",
       "spec.compile.builder: expected one of Auto, FirstPod, Job"},
      {R"({"gate": {"mode": "Always"}})", "spec.gate.mode: expected one of Auto, Hold, Never"},
      {R"({"gate": {"maxHoldSeconds": 3601}})",
       "spec.gate.maxHoldSeconds: 3601 is not between 0 and 3600"},
      {R"({"paused": "yes"})", "spec.paused: expected true or false"},
      {R"({"container": "a/b"})", "spec.container: expected a DNS label of at most 63 characters"},
      {R"({"gpuTypes": "cpu"})", "spec.gpuTypes: expected a list of at most 32 strings"},
      {R"({"nodeSelector": ["a"]})", "spec.nodeSelector: expected a map of at most 32 strings"},
  });
}

TEST(CacheWarmup, ObjectWithoutSpecIsRejected) {
  Json object = MinimalWarmup();
  object.erase("spec");
  EXPECT_EQ(DecodeCacheWarmup(object).status().message(), "spec: is required");
  EXPECT_FALSE(DecodeCacheWarmup(Json::array()).ok());
  EXPECT_FALSE(DecodeCacheWarmup(nullptr).ok());
}

TEST(CacheWarmup, EnumValuesMatchTheSchema) {
  EXPECT_EQ(Name(Builder::kFirstPod), "FirstPod");
  EXPECT_EQ(Name(GateMode::kNever), "Never");
  EXPECT_EQ(Name(BuilderState::kCapturing), "Capturing");
  EXPECT_EQ(Name(StartResult::kHollow), "hollow");
}

}  // namespace
}  // namespace cachewarm::api

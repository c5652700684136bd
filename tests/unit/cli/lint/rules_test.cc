// SPDX-License-Identifier: Apache-2.0
// Each rule has templates that it reports and templates that differ a little and that no rule
// reports.
#include "cli/lint/rules.h"

#include <set>

#include "gmock/gmock.h"
#include "tests/unit/cli/lint/documents.h"

namespace cachewarm::lint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kImage = "image: 'vllm/vllm-openai:v0.28.0', ";
const std::string kPodName = "{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}";
const std::string kPodIp = "{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}";

std::string Env(const std::string& variables) {
  return kImage + "env: [" + variables + "]";
}
std::string Args(const std::string& words) {
  return kImage + "args: [" + words + "]";
}
std::string Script(const std::string& script) {
  return kImage + "command: [bash, -c], args: ['" + script + "']";
}
std::string Service(const std::string& name, const std::string& ns = "models") {
  return "---\nkind: Service\nmetadata: {name: " + name + ", namespace: " + ns + "}\n";
}

struct Case {
  std::string rule;
  std::string documents;
};

// Every case is reported by its rule, once, and by no other rule.
const std::vector<Case>& Reported() {
  static const std::vector<Case> cases = {
      {"per-pod-environment",
       Deployment(Env("{name: VLLM_DP_ID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}"))},
      {"per-pod-environment", Deployment(Env(kPodName + ", {name: VLLM_TAG, value: a-$(POD)}"))},
      {"per-pod-environment",
       Deployment(Env(kPodName + ", {name: B, value: $(POD)}, {name: VLLM_TAG, value: $(B)}"))},
      {"per-pod-environment",
       Deployment(Env(kPodName + ", {name: TRITON_CACHE_DIR, value: /data/$(POD)}"))},
      {"per-pod-environment", Deployment(Env(kPodName + ", {name: HOME, value: /home/$(POD)}"))},
      {"nixl-side-channel-host",
       Deployment(Env("{name: VLLM_NIXL_SIDE_CHANNEL_HOST, valueFrom: {fieldRef: {fieldPath: "
                      "status.podIP}}}"))},
      {"ray-bundle-indices", Deployment(Env("{name: VLLM_RAY_BUNDLE_INDICES, value: '0,1'}"))},
      {"api-key-environment",
       Deployment(Env("{name: VLLM_API_KEY, valueFrom: {secretKeyRef: {name: a, key: b}}}"))},
      {"aiter-jit-dir", Deployment(Env("{name: AITER_JIT_DIR, value: /data/aiter}"))},
      {"service-environment", Deployment(Args("serve")) + Service("vllm")},
      {"service-environment", Deployment(Args("serve")) + Service("sglang")},
      {"random-model-path", Deployment(Script("vllm serve /models/$(date +%s)"))},
      {"random-model-path", Deployment(Script("vllm serve $(mktemp -d)/model --port 80"))},
      {"random-model-path", Deployment(Script("DIR=/tmp/$RANDOM; copy $DIR; vllm serve $DIR"))},
      {"random-model-path", Deployment(Script("vllm serve --model=/tmp/${HOSTNAME}/model"))},
      {"random-model-path", Deployment(Env(kPodName) + ", args: [--model, /models/$(POD)/llama]")},
      {"one-sided-hub-offline", Deployment(Args("--model, Qwen/Qwen3-8B")) +
                                    Deployment(Args("--model, Qwen/Qwen3-8B") +
                                                   ", env: [{name: HF_HUB_OFFLINE, value: '1'}]",
                                               "", "decode")},
      {"one-sided-model-path", Deployment(Args("--model, Qwen/Qwen3-8B")) +
                                   Deployment(Args("--model=/models/Qwen3-8B"), "", "decode")},
      {"one-sided-model-path",
       Deployment(Args("--model, Qwen/Qwen3-8B")) +
           Deployment(Script("vllm serve /hub/models--Qwen--Qwen3-8B/snapshots/0a1b/"), "", "b")},
      {"port-per-pod", Deployment(Env(kPodIp) + ", args: [--master-port, $(IP)]")},
      {"port-per-pod", Deployment(Script("vllm serve llama --rpc-port=$RANDOM"))},
      {"port-per-pod", Deployment(Script("P=$(mktemp -u); vllm serve llama --port $P"))},
      {"unpinned-image", Deployment("image: vllm/vllm-openai")},
      {"unpinned-image", Deployment("image: 'registry:5000/vllm-openai:latest'")},
      {"unpinned-image", Deployment("image: 'vllm/vllm-openai:latest-cu129'")},
      {"home-from-uid", Deployment(Args("serve"), "securityContext: {runAsUser: 1000}")},
      {"home-from-uid", Deployment(Args("serve") + ", securityContext: {runAsUser: 1000}")},
      {"short-probe",
       Deployment(Args("serve") + ", startupProbe: {periodSeconds: 10, failureThreshold: 29}")},
      {"short-probe", Deployment(Args("serve") + ", livenessProbe: {initialDelaySeconds: 60}")},
      {"cache-on-empty-dir", Deployment(Env("{name: VLLM_CACHE_ROOT, value: /cache/vllm}") +
                                            ", volumeMounts: [{name: v, mountPath: /cache}]",
                                        "volumes: [{name: v, emptyDir: {}}]")},
      {"cache-on-empty-dir",
       Deployment(Args("serve") + ", volumeMounts: [{name: v, mountPath: /root/.triton/}]",
                  "volumes: [{name: v, emptyDir: {}}]")},
  };
  return cases;
}

// No rule reports any of these cases; `rule` names the rule that is near.
const std::vector<Case>& NearMisses() {
  static const std::vector<Case> cases = {
      {"per-pod-environment", Deployment(Env(kPodName + ", {name: OTEL_NAME, value: $(POD)}"))},
      {"per-pod-environment",
       Deployment(Env("{name: VLLM_HOST_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}"))},
      {"per-pod-environment",
       Deployment(Env("{name: VLLM_NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}"))},
      {"per-pod-environment", Deployment(Env("{name: VLLM_TAG, value: $(POD)}, " + kPodName))},
      {"nixl-side-channel-host",
       Deployment(Env("{name: VLLM_NIXL_SIDE_CHANNEL_HOST, value: localhost}"))},
      {"ray-bundle-indices", Deployment(Env("{name: VLLM_RAY_PER_WORKER_GPUS, value: '1'}"))},
      {"api-key-environment",
       Deployment(Env("{name: API_KEY, value: a}") + ", args: [serve, --api-key, $(API_KEY)]")},
      {"aiter-jit-dir", Deployment(Env("{name: VLLM_ROCM_USE_AITER, value: '1'}"))},
      {"service-environment", Deployment(Args("serve")) + Service("vllm-llama")},
      {"service-environment", Deployment(Args("serve")) + Service("vllm", "other")},
      {"service-environment",
       Deployment(Args("serve"), "enableServiceLinks: false") + Service("vllm")},
      {"random-model-path", Deployment(Script("vllm serve /models/llama > /tmp/$(date +%s).log"))},
      {"random-model-path", Deployment(Script("DIR=/models; vllm serve $DIR/llama"))},
      {"random-model-path", Deployment(Script("vllm serve $RANDOM_MODEL"))},
      {"random-model-path",
       Deployment("image: 'lmsysorg/sglang:v1', args: [--model-path, /tmp/$HOSTNAME]")},
      {"one-sided-hub-offline", Deployment(Args("--model, Qwen/Qwen3-8B")) +
                                    Deployment(Args("--model, Qwen/Qwen3-4B") +
                                                   ", env: [{name: HF_HUB_OFFLINE, value: '1'}]",
                                               "", "decode")},
      {"one-sided-hub-offline", Deployment(Args("--model, Qwen/Qwen3-8B")) +
                                    Deployment(Args("--model, Qwen/Qwen3-8B") +
                                                   ", env: [{name: HF_HUB_OFFLINE, value: '0'}]",
                                               "", "decode")},
      {"one-sided-model-path",
       Deployment(Args("--model, /models/Qwen3-8B")) +
           Deployment(Args("--model, $(M)") + ", env: [{name: M, value: /models/Qwen3-8B}]", "",
                      "decode")},
      {"one-sided-model-path",
       Deployment(Args("--model, Qwen/Qwen3-8B")) +
           Deployment("image: 'vllm/vllm-openai:v0.27.0', args: [--model, /models/Qwen3-8B]", "",
                      "old")},
      {"port-per-pod", Deployment(Env("{name: PORT, value: '80'}") + ", args: [--port, $(PORT)]")},
      {"port-per-pod", Deployment(Env(kPodIp) + ", args: [--host, $(IP), --port, '80']")},
      {"unpinned-image", Deployment("image: 'vllm/vllm-openai@sha256:0a'")},
      {"unpinned-image", Deployment("image: 'vllm/vllm-openai:nightly-0a1b2c'")},
      {"home-from-uid",
       Deployment(Env("{name: HOME, value: /tmp}"), "securityContext: {runAsUser: 1000}")},
      {"home-from-uid", Deployment(Args("serve"), "securityContext: {runAsUser: 0}")},
      {"home-from-uid", Deployment(Args("serve") + ", securityContext: {runAsUser: 0}",
                                   "securityContext: {runAsUser: 1000}")},
      {"short-probe",
       Deployment(Args("serve") + ", startupProbe: {periodSeconds: 10, failureThreshold: 30}, "
                                  "livenessProbe: {periodSeconds: 1}")},
      {"short-probe", Deployment(Args("serve") + ", readinessProbe: {periodSeconds: 1}")},
      {"cache-on-empty-dir", Deployment(Env("{name: VLLM_CACHE_ROOT, value: /cache/vllm}") +
                                            ", volumeMounts: [{name: v, mountPath: /cach}]",
                                        "volumes: [{name: v, emptyDir: {}}]")},
      {"cache-on-empty-dir", Deployment(Env("{name: VLLM_CACHE_ROOT, value: /cache/vllm}") +
                                            ", volumeMounts: [{name: v, mountPath: /cache}]",
                                        "volumes: [{name: v, hostPath: {path: /data}}]")},
      {"cache-on-empty-dir",
       Deployment(Args("serve") + ", volumeMounts: [{name: v, mountPath: /dev/shm}]",
                  "volumes: [{name: v, emptyDir: {}}]")},
  };
  return cases;
}

TEST(LintRules, ReportEveryCaseOnce) {
  for (const Case& each : Reported()) {
    EXPECT_THAT(FindingsOf(InputOf(each.documents)), ElementsAre(HasSubstr(each.rule + " ")))
        << each.documents;
  }
}

TEST(LintRules, ReportNoNearMiss) {
  for (const Case& each : NearMisses()) {
    EXPECT_THAT(FindingsOf(InputOf(each.documents)), IsEmpty()) << each.documents;
  }
}

TEST(LintRules, EveryRuleHasACaseAndANearMiss) {
  std::set<std::string> reported;
  std::set<std::string> near;
  for (const Case& each : Reported()) {
    reported.insert(each.rule);
  }
  for (const Case& each : NearMisses()) {
    near.insert(each.rule);
  }
  const std::vector<std::string> names = RuleNames();
  EXPECT_EQ(reported, std::set<std::string>(names.begin(), names.end()));
  EXPECT_EQ(near, reported);
}

TEST(LintRules, HaveARemedyAndWhatIsKnown) {
  for (const Rule& rule : AllRules()) {
    EXPECT_FALSE(rule.looks_at.empty() || rule.remedy.empty() || rule.known.empty()) << rule.name;
    EXPECT_FALSE(rule.remedy.ends_with('.')) << rule.name;
  }
}

TEST(LintRules, MeasuredColdStartReplacesTheAssumedOne) {
  Input input = InputOf(Deployment(Args("serve") + ", startupProbe: {failureThreshold: 60}"));
  EXPECT_THAT(FindingsOf(input), IsEmpty());
  input.templates[0].cold_seconds = 870;
  EXPECT_THAT(FindingsOf(input), ElementsAre(HasSubstr("870 s (median of the CacheWarmup)")));
  input.templates[0].cold_seconds.reset();
  input.assumed_cold_seconds = 601;
  EXPECT_THAT(FindingsOf(input), ElementsAre(HasSubstr("601 s (assumed, none was measured)")));
}

TEST(LintRules, NameTheFieldOfTheObject) {
  EXPECT_THAT(FindingsOf(InputOf(Deployment("image: vllm/vllm-openai"))),
              ElementsAre(HasSubstr("unpinned-image spec.template.spec.containers[0].image: ")));
  EXPECT_THAT(FindingsOf(InputOf(Deployment(Env("{name: VLLM_API_KEY, value: a}")))),
              ElementsAre(HasSubstr("spec.template.spec.containers[0].env[VLLM_API_KEY]")));
}

TEST(Lint, SkipsRulesByName) {
  const Input input = InputOf(Deployment("image: vllm/vllm-openai"));
  EXPECT_EQ(Lint(input, {}).size(), 1U);
  EXPECT_THAT(Lint(input, {"unpinned-image"}), IsEmpty());
}

TEST(Lint, OrdersFindingsByObject) {
  const Input input = InputOf(
      Deployment("image: vllm/vllm-openai, env: [{name: VLLM_API_KEY, value: a}]", "", "b") +
      Deployment("image: vllm/vllm-openai, env: [{name: VLLM_API_KEY, value: a}]", "", "a"));
  std::vector<std::string> order;
  for (const Finding& finding : Lint(input, {})) {
    order.push_back(finding.problem.pod->name + " " + std::string(finding.rule->name));
  }
  EXPECT_THAT(order, ElementsAre("b api-key-environment", "b unpinned-image",
                                 "a api-key-environment", "a unpinned-image"));
}

}  // namespace
}  // namespace cachewarm::lint

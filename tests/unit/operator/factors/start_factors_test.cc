// SPDX-License-Identifier: Apache-2.0
#include "operator/factors/start_factors.h"

#include <gtest/gtest.h>

#include "lib/base/hmac.h"
#include "lib/codec/json_value.h"
#include "lib/codec/yaml.h"

namespace cachewarm::factors {
namespace {

using codec::Json;

constexpr std::string_view kSalt = "0123456789abcdef0123456789abcdef";

Json FromYaml(const std::string& text) {
  return codec::ParseYaml(text).value();
}

StartFactors FactorsOfContainer(const std::string& yaml, std::string_view salt = kSalt) {
  const Json container = FromYaml(yaml);
  return FactorsOf({.container = &container,
                    .image = "server:1",
                    .devices = 2,
                    .container_name = "server",
                    .gpu_type = "nvidia/h100-80gb-hbm3/sm_90",
                    .cpu_class = "x86-64-v4/amd-25-17/00000001",
                    .driver = "570.12"},
                   "node-a", salt);
}

TEST(StartFactors, HmacIsThatOfRfc4231) {
  EXPECT_EQ(HmacOf(std::string(20, '\x0b'), "Hi There").hex(),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(HmacOf("Jefe", "what do ya want for nothing?").hex(),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      HmacOf(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")
          .hex(),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(StartFactors, FactsOfPodAndNodeAreNotHashed) {
  const StartFactors factors = FactorsOfContainer("{mountPath: /var/cache/cachewarm}");
  EXPECT_EQ(factors.at("image"), "server:1");
  EXPECT_EQ(factors.at("devices"), "2");
  EXPECT_EQ(factors.at("container"), "server");
  EXPECT_EQ(factors.at("gpuType"), "nvidia/h100-80gb-hbm3/sm_90");
  EXPECT_EQ(factors.at("cpuClass"), "x86-64-v4/amd-25-17/00000001");
  EXPECT_EQ(factors.at("driver"), "570.12");
  EXPECT_EQ(factors.at("mountPath"), "/var/cache/cachewarm");
  EXPECT_EQ(factors.at("node"), "node-a");
}

TEST(StartFactors, LongTextIsCutBetweenCharacters) {
  const std::string fits(255, 'a');
  const StartFactors factors = FactorsOfContainer("{mountPath: " + fits + "\u00e9b}");
  EXPECT_EQ(factors.at("mountPath"), fits);
  EXPECT_EQ(FactorsOfContainer("{mountPath: " + fits + "bc}").at("mountPath"), fits + "b");
}

TEST(StartFactors, ValuesAreHashedWithTheSaltAndTheirName) {
  const std::string yaml = "env: [{name: VLLM_A, value: secret}, {name: VLLM_B, value: secret}]";
  const StartFactors factors = FactorsOfContainer(yaml);
  EXPECT_TRUE(factors.at("env/VLLM_A").starts_with("h:"));
  EXPECT_EQ(factors.at("env/VLLM_A").size(), 18U);
  EXPECT_NE(factors.at("env/VLLM_A"), factors.at("env/VLLM_B"));
  const StartFactors others = FactorsOfContainer(yaml, "another salt with 32 bytes or more");
  EXPECT_NE(factors.at("env/VLLM_A"), others.at("env/VLLM_A"));
  EXPECT_NE(factors.at("salt"), others.at("salt"));
}

TEST(StartFactors, ShortSaltGivesNoFactors) {
  EXPECT_TRUE(FactorsOfContainer("{}", "short").empty());
  EXPECT_TRUE(FactorsOf({}, "node-a", kSalt).empty()) << "the container is not known";
}

TEST(StartFactors, FlagHasOneFactorInBothForms) {
  const StartFactors apart = FactorsOfContainer("args: [--dtype, half, --eager]");
  const StartFactors joined = FactorsOfContainer("command: [--dtype=half, --eager]");
  EXPECT_EQ(apart, joined);
  EXPECT_NE(apart.at("args/--dtype"),
            FactorsOfContainer("args: [--dtype, float]").at("args/--dtype"));
  EXPECT_TRUE(apart.contains("args/--eager"));
}

TEST(StartFactors, WordThatMayHoldASecretIsNotAFlag) {
  const StartFactors factors =
      FactorsOfContainer("args: [-psecret, --" + std::string(80, 'x') + ", '--a b', '--', serve]");
  for (const auto& [name, value] : factors) {
    EXPECT_EQ(name.find("secret"), std::string::npos);
    EXPECT_EQ(name.find("xxx"), std::string::npos);
  }
  EXPECT_TRUE(factors.contains("args/5"));
}

TEST(StartFactors, FieldOfThePodIsNamedAndNotHashed) {
  const StartFactors factors = FactorsOfContainer(R"y(
env:
- {name: MY_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
- {name: VLLM_NIXL_SIDE_CHANNEL_HOST, value: "http://$(MY_IP):1"}
- {name: VLLM_NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
- {name: VLLM_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
args: ["--listen=$(VLLM_NIXL_SIDE_CHANNEL_HOST)"]
)y");
  EXPECT_FALSE(factors.contains("env/MY_IP")) << "no engine keys on it";
  EXPECT_EQ(factors.at("env/VLLM_NIXL_SIDE_CHANNEL_HOST"), "pod:status.podIP");
  EXPECT_EQ(factors.at("env/VLLM_NODE"), "node:spec.nodeName");
  EXPECT_TRUE(factors.at("env/VLLM_NAMESPACE").starts_with("h:"));
  EXPECT_EQ(factors.at("args/--listen"), "pod:status.podIP");
}

TEST(StartFactors, SourceOfAVariableIsCompared) {
  const auto of = [](const std::string& secret) {
    return FactorsOfContainer("env: [{name: VLLM_A, valueFrom: {secretKeyRef: {name: " + secret +
                              ", key: k}}}]")
        .at("env/VLLM_A");
  };
  EXPECT_EQ(of("a"), of("a"));
  EXPECT_NE(of("a"), of("b"));
  EXPECT_TRUE(
      FactorsOfContainer("envFrom: [{configMapRef: {name: c}}]").at("envFrom").starts_with("h:"));
}

TEST(StartFactors, ImageIdIsLeftOutBesideADigest) {
  EXPECT_EQ(FactorsOfContainer("{imageID: 'sha256:1'}").at("imageID"), "sha256:1");
  const Json container = FromYaml("{imageID: 'sha256:1'}");
  EXPECT_FALSE(FactorsOf({.container = &container, .image = "server@sha256:1"}, "n", kSalt)
                   .contains("imageID"));
}

TEST(StartFactors, LeastRelevantFactorsAreCutFirst) {
  Json container = Json::object();
  for (int i = 0; i < 500; ++i) {
    container["env"].push_back({{"name", "APP_" + std::to_string(i)}, {"value", "x"}});
  }
  container["env"].push_back({{"name", "VLLM_A"}, {"value", "x"}});
  container["args"] = {"--dtype", "half"};
  const StartFactors factors = FactorsOf({.container = &container, .image = "i"}, "n", kSalt);
  EXPECT_LE(factors.size(), api::kStartFactorsMax);
  EXPECT_EQ(factors.at("cut"), "1");
  EXPECT_TRUE(factors.contains("env/VLLM_A"));
  EXPECT_TRUE(factors.contains("args/--dtype"));
  size_t bytes = 0;
  for (const auto& [name, value] : factors) {
    bytes += name.size() + value.size();
  }
  EXPECT_LE(bytes, kFactorBytesMax);
  EXPECT_EQ(Decode(Encode(factors)), factors);
}

TEST(StartFactors, UntrustedNamesAreBoundedAndPrintable) {
  Json container = {{"env",
                     {{{"name", "VLLM_\x1b[31m" + std::string(5'000, 'x')}, {"value", ""}},
                      "no object",
                      {{"name", 7}}}},
                    {"args", {1, nullptr}},
                    {"command", "no list"}};
  for (const auto& [name, value] : FactorsOf({.container = &container, .image = "i"}, "n", kSalt)) {
    EXPECT_LE(name.size(), 128U);
    EXPECT_EQ(name.find('\x1b'), std::string::npos);
  }
}

TEST(StartedContainers, KeepsWhatFactorsRead) {
  const Json kept = StartedContainersOf(FromYaml(R"(
spec:
  containers:
  - name: server
    image: i
    command: [a]
    args: [b]
    env: [{name: A, value: b}]
    envFrom: [{secretRef: {name: s}}]
    volumeMounts: [{name: cachewarm, mountPath: /var/cache/cachewarm}, {name: x, mountPath: /x}]
    lifecycle: {}
  - {name: proxy}
status:
  containerStatuses: [{name: server, imageID: "sha256:1"}]
)"));
  EXPECT_EQ(kept, FromYaml(R"(
- name: server
  command: [a]
  args: [b]
  env: [{name: A, value: b}]
  envFrom: [{secretRef: {name: s}}]
  mountPath: /var/cache/cachewarm
  imageID: "sha256:1"
- {name: proxy}
)"));
  const Json pod = {{std::string(kStartedContainers), kept}};
  EXPECT_EQ(*FindStartedContainer(pod, "proxy"), FromYaml("{name: proxy}"));
  EXPECT_EQ(FindStartedContainer(pod, "none"), nullptr);
  EXPECT_EQ(FindStartedContainer(Json::object(), "server"), nullptr);
}

}  // namespace
}  // namespace cachewarm::factors

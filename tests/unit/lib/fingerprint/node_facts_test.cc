// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/node_facts.h"

#include <gmock/gmock.h>

#include <map>

#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::fingerprint {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

NodeFacts Probed() {
  return {.gpu_type = "nvidia/h200/sm_90",
          .cpu_class = "x86-64-v4/amd-25-17/5c0d9f21",
          .driver_version = "570.86.15",
          .device_count = 8,
          .cpu = {.architecture = "x86_64",
                  .vendor = "amd",
                  .family = "25",
                  .model = "17",
                  .flags = {"avx"}},
          .gpu_source = "nvml",
          .cpu_source = "proc"};
}

TEST(ParseDeclaredFacts, ReadsTypes) {
  const auto facts = ParseDeclaredFacts(R"(
gpuType: nvidia/h100-80gb-hbm3/sm_90/mig-1g.10gb
driverVersion: 570.86.15
deviceCount: 7
cpuClass: x86-64-v3/intel-6-85/0123abcd
)");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->gpu_type, "nvidia/h100-80gb-hbm3/sm_90/mig-1g.10gb");
  EXPECT_EQ(facts->cpu_class, "x86-64-v3/intel-6-85/0123abcd");
  EXPECT_EQ(facts->driver_version, "570.86.15");
  EXPECT_EQ(facts->device_count, 7);
  EXPECT_FALSE(facts->cpu.has_value());
}

TEST(ParseDeclaredFacts, ReadsADeviceAndAProcessor) {
  const auto facts = ParseDeclaredFacts(
      R"({"gpu": {"name": "NVIDIA H100 80GB HBM3", "computeCapability": "9.0"},
          "cpu": {"architecture": "x86_64", "vendor": "intel", "family": "6", "model": "85",
                  "flags": ["avx2", "avx", "hypervisor"]}})");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->gpu_type, "nvidia/h100-80gb-hbm3/sm_90");
  EXPECT_EQ(facts->device_count, 1);
  ASSERT_TRUE(facts->cpu.has_value());
  EXPECT_THAT(facts->cpu->flags, ::testing::ElementsAre("avx", "avx2"));
}

TEST(ParseDeclaredFacts, CountsNoDevicesOnACpuNode) {
  const auto facts = ParseDeclaredFacts("gpuType: cpu");
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->device_count, 0);
}

TEST(ParseDeclaredFacts, NamesTheFieldAndTheRemedy) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "document"},
      {"- a", "document: expected an object"},
      {"gpuTyp: cpu", "gpuTyp: unknown field; known are gpuType"},
      {"gpuType: H100", "gpuType: expected \"cpu\" or"},
      {"gpuType: 5", "gpuType: expected a string"},
      {"{gpuType: cpu, gpu: {name: x, computeCapability: '9.0'}}",
       "gpu: cannot be set beside gpuType"},
      {"gpu: {name: x}", "gpu.computeCapability: is required"},
      {"gpu: {computeCapability: '9.0'}", "gpu.name: is required"},
      {"gpu: {name: x, computeCapability: 9.0}", "gpu.computeCapability: expected a string"},
      {"gpu: {name: x, computeCapability: '90'}", "gpu.computeCapability: expected a quoted"},
      {"gpu: {name: x, computeCapability: '9.-1'}", "gpu.computeCapability"},
      {"gpu: {name: x, computeCapability: '9.0', sm: 90}", "gpu.sm: unknown field"},
      {"cpuClass: avx2", "cpuClass: expected <level>"},
      {"{cpuClass: x86-64/a/01234567, cpu: {architecture: x86_64}}",
       "cpu: cannot be set beside cpuClass"},
      {"cpu: {architecture: x86_64, vendor: amd, model: '1'}", "cpu.flags: is required"},
      {"cpu: {architecture: mips, vendor: amd, model: '1', flags: []}", "cpu.architecture"},
      {"cpu: {architecture: x86_64, vendor: amd, model: '1', flags: [], cores: 4}",
       "cpu.cores: unknown field"},
      {"{gpuType: cpu, deviceCount: -1}", "deviceCount: -1 is not between"},
      {"{gpuType: cpu, deviceCount: many}", "deviceCount: expected an integer"},
      {"gpuType: cpu\ngpuType: cpu", "duplicate key"},
      {"{", "malformed YAML"},
  };
  for (const auto& [text, message] : cases) {
    const absl::Status status = ParseDeclaredFacts(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
  }
}

TEST(ParseDeclaredFacts, ReadsComputeCapabilitiesUpToTheirLimits) {
  const auto type_of = [](const std::string& capability) {
    const auto facts =
        ParseDeclaredFacts("gpu: {name: x, computeCapability: '" + capability + "'}");
    return facts.ok() ? *facts->gpu_type : std::string("refused");
  };
  EXPECT_EQ(type_of("0.0"), "nvidia/x/sm_00");
  EXPECT_EQ(type_of("12.1"), "nvidia/x/sm_121");
  EXPECT_EQ(type_of("999.9"), "nvidia/x/sm_9999");
  for (const char* bad : {"1000.0", "9.10", "-1.0", "9.", ".0", "x9.0", "9x.0", "9.0x", "9", ""}) {
    EXPECT_EQ(type_of(bad), "refused") << bad;
  }
}

TEST(ParseDeclaredFacts, BoundsEveryText) {
  const auto parse = [](const std::string& field, size_t bytes) {
    const std::string text(bytes, 'a');
    std::map<std::string, std::string> cpu = {{"vendor", "amd"}, {"family", "25"}, {"model", "17"}};
    std::string yaml = "cpu: {architecture: x86_64, flags: []";
    cpu[field] = text;
    for (const auto& [name, value] : cpu) {
      yaml += ", " + name + ": '" + value + "'";
    }
    return ParseDeclaredFacts(yaml + "}").status();
  };
  for (const char* field : {"vendor", "family", "model"}) {
    EXPECT_TRUE(parse(field, 40).ok()) << field << parse(field, 40);
    EXPECT_THAT(std::string(parse(field, 41).message()), HasSubstr(field));
  }
  const auto driver = [](size_t bytes) {
    return ParseDeclaredFacts("gpuType: cpu\ndriverVersion: " + std::string(bytes, 'x')).status();
  };
  EXPECT_TRUE(driver(64).ok()) << driver(64);
  EXPECT_FALSE(driver(65).ok());
  const std::string unknown(100, 'u');
  EXPECT_THAT(std::string(ParseDeclaredFacts(unknown + ": 1").status().message()),
              StartsWith(unknown.substr(0, 60) + ": unknown field"));
}

TEST(ParseDeclaredFacts, RefusesLargeAndDeepInput) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      ParseDeclaredFacts("gpuType: " + std::string(100'000, 'x')).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      ParseDeclaredFacts(std::string(1000, '[') + std::string(1000, ']')).status()));
}

TEST(Combine, FillsGapsWithProbedFacts) {
  EXPECT_EQ(Combine({}, Probed()), Probed());
  DeclaredFacts declared;
  declared.gpu_type = "cpu";
  const NodeFacts facts = Combine(declared, Probed());
  EXPECT_EQ(facts.gpu_type, "cpu");
  EXPECT_EQ(facts.driver_version, "");
  EXPECT_EQ(facts.device_count, 0);
  EXPECT_EQ(facts.gpu_source, "file");
  EXPECT_EQ(facts.cpu_class, Probed().cpu_class);
  EXPECT_EQ(facts.cpu_source, "proc");
}

TEST(Combine, DropsProbedCpuFactsIfTheClassIsDeclared) {
  DeclaredFacts declared;
  declared.cpu_class = "x86-64-v3/intel-6-85/0123abcd";
  const NodeFacts facts = Combine(declared, Probed());
  EXPECT_EQ(facts.cpu_class, "x86-64-v3/intel-6-85/0123abcd");
  EXPECT_EQ(facts.cpu, CpuFacts{});
  EXPECT_EQ(facts.cpu_source, "file");
  EXPECT_EQ(facts.gpu_type, "nvidia/h200/sm_90");
}

TEST(Combine, DerivesTheClassOfADeclaredProcessor) {
  const auto declared = ParseDeclaredFacts(
      "cpu: {architecture: x86_64, vendor: intel, family: '6', model: '85', flags: [avx2]}");
  ASSERT_TRUE(declared.ok()) << declared.status();
  EXPECT_THAT(Combine(*declared, Probed()).cpu_class, StartsWith("x86-64/intel-6-85/"));
}

TEST(NodeFactsToJson, WritesKnownFacts) {
  EXPECT_EQ(codec::DumpJson(NodeFactsToJson(Probed())),
            R"({"cpu":{"architecture":"x86_64","family":"25","flags":["avx"],"model":"17",)"
            R"("vendor":"amd"},"cpuClass":"x86-64-v4/amd-25-17/5c0d9f21","cpuSource":"proc",)"
            R"("deviceCount":8,"driverVersion":"570.86.15","gpuSource":"nvml",)"
            R"("gpuType":"nvidia/h200/sm_90"})");
  NodeFacts declared = Probed();
  declared.cpu = {};
  EXPECT_FALSE(NodeFactsToJson(declared).contains("cpu"));
}

TEST(ParseNodeFacts, ReadsWhatNodeFactsToJsonWrites) {
  NodeFacts facts{.gpu_type = "nvidia/a10+l4/sm_86+sm_89",
                  .gpu_kinds = {"nvidia/a10/sm_86", "nvidia/l4/sm_89"},
                  .gpu_memory_bytes = 1 << 30,
                  .cpu_class = "x86-64-v4/amd-25-17/5c0d9f21",
                  .driver_version = "570.86.15",
                  .device_count = 2,
                  .cpu = {.architecture = "x86_64", .vendor = "amd", .model = "17"},
                  .gpu_source = "nvml",
                  .cpu_source = "proc"};
  EXPECT_EQ(*ParseNodeFacts(NodeFactsToJson(facts).dump()), facts);
  facts = {.cpu_class = "x86-64-v4/amd-25-17/5c0d9f21", .gpu_source = "none"};
  EXPECT_EQ(*ParseNodeFacts(NodeFactsToJson(facts).dump()), facts);
}

TEST(ParseNodeFacts, RejectsMalformedText) {
  for (const char* text :
       {"", "{", "[]", R"({"gpuType":"cpu"})", R"({"gpuType":"../x","cpuClass":"a"})",
        R"({"gpuType":"cpu","cpuClass":"none"})",
        R"({"gpuType":"cpu","cpuClass":"x86-64-v4/amd-25-17/5c0d9f21","deviceCount":-1})",
        R"({"gpuType":"cpu","cpuClass":"x86-64-v4/amd-25-17/5c0d9f21","gpuMemoryBytes":-1})",
        R"({"gpuType":"cpu","cpuClass":"x86-64-v4/amd-25-17/5c0d9f21","cpu":7})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseNodeFacts(text).status())) << text;
  }
}

}  // namespace
}  // namespace cachewarm::fingerprint

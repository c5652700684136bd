// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/node_facts.h"

#include <algorithm>
#include <charconv>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"
#include "lib/codec/yaml.h"

namespace cachewarm::fingerprint {
namespace {

using codec::Reader;

constexpr size_t kFlagsMax = 512;

absl::Status CheckMembers(const codec::Json& object, std::string_view path,
                          std::initializer_list<std::string_view> known) {
  if (!object.is_object()) {
    return absl::OkStatus();  // not an object: the reader reports that
  }
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return absl::InvalidArgumentError(fmt::format("{}{}: unknown field; known are {}", path,
                                                    name.substr(0, 60), fmt::join(known, ", ")));
    }
  }
  return absl::OkStatus();
}

// Parses a compute capability: "9.0" into 9 and 0.
bool ParseCapability(std::string_view text, int& major, int& minor) {
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) {
    return false;
  }
  const auto number = [](std::string_view part, int max, int& out) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), out);
    return error == std::errc() && end == part.data() + part.size() && out >= 0 && out <= max;
  };
  return number(text.substr(0, dot), 999, major) && number(text.substr(dot + 1), 9, minor);
}

void ReadGpu(Reader& reader, DeclaredFacts& out) {
  GpuDevice device;
  std::string capability;
  reader.Require("name").Require("computeCapability");
  reader.Read("name", device.name, 256)
      .Read("computeCapability", capability, 16)
      .Read("migProfile", device.mig_profile, 64);
  if (reader.status().ok() && !ParseCapability(capability, device.sm_major, device.sm_minor)) {
    reader.Fail("computeCapability", "expected a quoted number such as \"9.0\"");
  }
  out.gpu_type = GpuTypeOf(device);
}

void ReadCpu(Reader& reader, DeclaredFacts& out) {
  CpuFacts cpu;
  reader.Require("architecture").Require("vendor").Require("model").Require("flags");
  reader.Read("architecture", cpu.architecture, 16)
      .Read("vendor", cpu.vendor, 40)
      .Read("family", cpu.family, 40)
      .Read("model", cpu.model, 40)
      .Read("flags", cpu.flags, kFlagsMax);
  out.cpu = std::move(cpu);
}

absl::Status ReadTypes(Reader& reader, DeclaredFacts& out) {
  std::string gpu_type;
  std::string cpu_class;
  reader.Read("gpuType", gpu_type, 253).Read("cpuClass", cpu_class, 160);
  if (reader.Has("gpuType")) {
    if (!IsGpuType(gpu_type)) {
      reader.Fail("gpuType",
                  "expected \"cpu\" or <vendor>/<name>/sm_<nn>[/mig-<profile>] or "
                  "amd/<name>/gfx<nnn> of [a-z0-9.+-], such as nvidia/h100-80gb-hbm3/sm_90");
    }
    if (reader.Has("gpu")) {
      reader.Fail("gpu", "cannot be set beside gpuType; remove one of them");
    }
    out.gpu_type = gpu_type;
  }
  if (reader.Has("cpuClass")) {
    if (!IsCpuClass(cpu_class)) {
      reader.Fail("cpuClass",
                  "expected <level>/<name>/<8 hex digits>, such as "
                  "x86-64-v3/intel-6-85/0123abcd");
    }
    if (reader.Has("cpu")) {
      reader.Fail("cpu", "cannot be set beside cpuClass; remove one of them");
    }
    out.cpu_class = cpu_class;
  }
  return reader.status();
}

}  // namespace

absl::StatusOr<DeclaredFacts> ParseDeclaredFacts(std::string_view text) {
  CW_ASSIGN_OR_RETURN(const codec::Json document,
                      codec::ParseYaml(text, {.bytes_max = 64U << 10U, .depth_max = 8}));
  CW_RETURN_IF_ERROR(CheckMembers(
      document, "", {"gpuType", "gpu", "driverVersion", "deviceCount", "cpuClass", "cpu"}));
  Reader reader(document, "");
  DeclaredFacts facts;
  CW_RETURN_IF_ERROR(ReadTypes(reader, facts));
  reader.Object("gpu", [&facts](Reader& gpu) { ReadGpu(gpu, facts); });
  reader.Object("cpu", [&facts](Reader& cpu) { ReadCpu(cpu, facts); });
  reader.Read("driverVersion", facts.driver_version, 64);
  facts.device_count = facts.gpu_type.value_or(std::string(kCpuOnly)) == kCpuOnly ? 0 : 1;
  reader.Read("deviceCount", facts.device_count, 0, kDevicesMax);
  CW_RETURN_IF_ERROR(reader.status());
  if (const codec::Json* gpu = reader.Member("gpu"); gpu != nullptr) {
    CW_RETURN_IF_ERROR(CheckMembers(*gpu, "gpu.", {"name", "computeCapability", "migProfile"}));
  }
  if (const codec::Json* cpu = reader.Member("cpu"); cpu != nullptr) {
    CW_RETURN_IF_ERROR(
        CheckMembers(*cpu, "cpu.", {"architecture", "vendor", "family", "model", "flags"}));
    CW_ASSIGN_OR_RETURN(facts.cpu, NormaliseCpu(*facts.cpu));
  }
  return facts;
}

NodeFacts Combine(const DeclaredFacts& declared, const NodeFacts& probed) {
  NodeFacts facts = probed;
  if (declared.gpu_type.has_value()) {
    facts.gpu_type = *declared.gpu_type;
    facts.gpu_kinds = facts.gpu_type == kCpuOnly ? std::vector<std::string>()
                                                 : std::vector<std::string>{facts.gpu_type};
    facts.gpu_memory_bytes = 0;
    facts.driver_version = declared.driver_version;
    facts.device_count = declared.device_count;
    facts.gpu_source = "file";
  }
  if (declared.cpu.has_value()) {
    facts.cpu = *declared.cpu;
    facts.cpu_class = CpuClassOf(*declared.cpu);
    facts.cpu_source = "file";
  } else if (declared.cpu_class.has_value()) {
    facts.cpu = CpuFacts{};
    facts.cpu_class = *declared.cpu_class;
    facts.cpu_source = "file";
  }
  return facts;
}

bool HasMixedKinds(const NodeFacts& facts) {
  return facts.gpu_kinds.size() > 1;
}

codec::Json NodeFactsToJson(const NodeFacts& facts) {
  codec::Json json = {{"gpuType", facts.gpu_type},
                      {"cpuClass", facts.cpu_class},
                      {"driverVersion", facts.driver_version},
                      {"deviceCount", facts.device_count},
                      {"gpuSource", facts.gpu_source},
                      {"cpuSource", facts.cpu_source}};
  if (HasMixedKinds(facts)) {
    json["gpuKinds"] = facts.gpu_kinds;
  }
  if (facts.gpu_memory_bytes > 0) {
    json["gpuMemoryBytes"] = facts.gpu_memory_bytes;
  }
  if (!facts.cpu.architecture.empty()) {
    json["cpu"] = {{"architecture", facts.cpu.architecture},
                   {"vendor", facts.cpu.vendor},
                   {"family", facts.cpu.family},
                   {"model", facts.cpu.model},
                   {"flags", facts.cpu.flags}};
  }
  return json;
}

absl::StatusOr<NodeFacts> ParseNodeFacts(std::string_view text) {
  CW_ASSIGN_OR_RETURN(const codec::Json document,
                      codec::ParseJson(text, {.bytes_max = 256U << 10U, .depth_max = 8}));
  Reader reader(document, "");
  NodeFacts facts;
  int64_t memory = 0;
  reader.Require("gpuType").Require("cpuClass");
  reader.Read("gpuType", facts.gpu_type, 253)
      .Read("cpuClass", facts.cpu_class, 160)
      .Read("driverVersion", facts.driver_version, 128)
      .Read("deviceCount", facts.device_count, 0, kDevicesMax)
      .Read("gpuSource", facts.gpu_source, 16)
      .Read("cpuSource", facts.cpu_source, 16)
      .Read("gpuKinds", facts.gpu_kinds, kDevicesMax)
      .Read("gpuMemoryBytes", memory, 0);
  reader.Object("cpu", [&facts](Reader& cpu) {
    cpu.Read("architecture", facts.cpu.architecture, 16)
        .Read("vendor", facts.cpu.vendor, 40)
        .Read("family", facts.cpu.family, 40)
        .Read("model", facts.cpu.model, 40)
        .Read("flags", facts.cpu.flags, kFlagsMax);
  });
  if (reader.status().ok() && !IsGpuType(facts.gpu_type)) {
    reader.Fail("gpuType", "expected a GPU type");
  }
  if (reader.status().ok() && !IsCpuClass(facts.cpu_class)) {
    reader.Fail("cpuClass", "expected a CPU class");
  }
  CW_RETURN_IF_ERROR(reader.status());
  facts.gpu_memory_bytes = static_cast<uint64_t>(memory);
  if (facts.gpu_kinds.empty() && facts.gpu_type != kCpuOnly) {
    facts.gpu_kinds = {facts.gpu_type};
  }
  return facts;
}

}  // namespace cachewarm::fingerprint

// SPDX-License-Identifier: Apache-2.0
#include "lib/probe/node_probe.h"

#include <array>
#include <fstream>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::probe {
namespace {

using fingerprint::DeclaredFacts;
using fingerprint::NodeFacts;

constexpr size_t kFactsMax = 64U << 10U;
constexpr size_t kCpuMax = 16U << 20U;

// Returns the content of a file; INVALID_ARGUMENT if it is longer than `bytes_max`. Does not use
// the size of the file, because files of /proc report a size of 0.
absl::StatusOr<std::string> ReadWhole(const std::string& path, size_t bytes_max) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::InvalidArgumentError(fmt::format("{}: cannot be read", path));
  }
  std::string text;
  std::array<char, 8192> block{};
  while (text.size() <= bytes_max) {
    file.read(block.data(), block.size());
    text.append(block.data(), static_cast<size_t>(file.gcount()));
    if (!file) {
      break;
    }
  }
  if (text.size() > bytes_max) {
    return absl::InvalidArgumentError(fmt::format("{}: longer than {} bytes", path, bytes_max));
  }
  return text;
}

absl::StatusOr<DeclaredFacts> ReadDeclared(const std::string& path) {
  if (path.empty()) {
    return DeclaredFacts{};
  }
  CW_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path, kFactsMax));
  absl::StatusOr<DeclaredFacts> facts = fingerprint::ParseDeclaredFacts(text);
  return facts.ok() ? facts : Annotate(facts.status(), path);
}

absl::Status ProbeGpu(gpu::Probe& probe, NodeFacts& facts) {
  CW_ASSIGN_OR_RETURN(const gpu::Devices found, probe.Run());
  std::vector<fingerprint::GpuDevice> devices;
  for (const gpu::Device& device : found.devices) {
    devices.push_back({.name = device.name,
                       .sm_major = device.sm_major,
                       .sm_minor = device.sm_minor,
                       .mig_profile = device.mig_profile});
  }
  facts.gpu_type = fingerprint::GpuTypeOf(devices);
  facts.driver_version = found.devices.empty() ? std::string() : found.driver_version;
  facts.device_count = static_cast<int>(devices.size());
  facts.gpu_source = found.source;
  return absl::OkStatus();
}

absl::Status ProbeCpu(const std::string& proc_root, NodeFacts& facts) {
  const std::string path = proc_root + "/cpuinfo";
  CW_ASSIGN_OR_RETURN(const std::string text, ReadWhole(path, kCpuMax));
  absl::StatusOr<fingerprint::CpuFacts> cpu = fingerprint::ParseProcCpu(text);
  if (!cpu.ok()) {
    return Annotate(cpu.status(), path);
  }
  facts.cpu = *std::move(cpu);
  facts.cpu_class = fingerprint::CpuClassOf(facts.cpu);
  facts.cpu_source = "proc";
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NodeFacts> ProbeNode(const NodeProbeOptions& options, gpu::Probe& gpu_probe) {
  CW_ASSIGN_OR_RETURN(const DeclaredFacts declared, ReadDeclared(options.facts_file));
  NodeFacts probed;
  if (!declared.gpu_type.has_value()) {
    CW_RETURN_IF_ERROR(ProbeGpu(gpu_probe, probed));
  }
  if (!declared.cpu.has_value() && !declared.cpu_class.has_value()) {
    CW_RETURN_IF_ERROR(ProbeCpu(options.proc_root, probed));
  }
  return Combine(declared, probed);
}

}  // namespace cachewarm::probe

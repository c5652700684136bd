// SPDX-License-Identifier: Apache-2.0
#include "lib/probe/node_probe.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/probe/driver_state.h"

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

// Returns the memory of one device in bytes; 0 if the devices differ by more than 1 % or report no
// memory.
uint64_t CommonMemory(const std::vector<gpu::Device>& devices) {
  uint64_t least = 0;
  uint64_t most = 0;
  for (const gpu::Device& device : devices) {
    least = least == 0 ? device.memory_bytes : std::min(least, device.memory_bytes);
    most = std::max(most, device.memory_bytes);
  }
  return most - least <= most / 100 ? least : 0;
}

absl::Status ProbeGpu(const NodeProbeOptions& options, gpu::Probe& probe, NodeFacts& facts) {
  CW_ASSIGN_OR_RETURN(const gpu::Devices found, probe.Run());
  if (options.describes_node && found.hidden > 0) {
    return absl::UnavailableError(
        fmt::format("the kernel denies this process the properties of {} AMD GPUs; give it their "
                    "render devices (/dev/dri/renderD*), or declare gpuType in the node facts file",
                    found.hidden));
  }
  std::vector<fingerprint::GpuDevice> devices;
  for (const gpu::Device& device : found.devices) {
    devices.push_back({.name = device.name,
                       .sm_major = device.sm_major,
                       .sm_minor = device.sm_minor,
                       .mig_profile = device.mig_profile,
                       .vendor = device.vendor == gpu::Vendor::kAmd ? "amd" : "nvidia",
                       .architecture = device.architecture});
  }
  facts.gpu_type = fingerprint::GpuTypeOf(devices);
  std::set<std::string> kinds;
  for (const fingerprint::GpuDevice& device : devices) {
    kinds.insert(fingerprint::GpuTypeOf(device));
  }
  facts.gpu_kinds.assign(kinds.begin(), kinds.end());
  facts.gpu_memory_bytes = CommonMemory(found.devices);
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

absl::Status CheckKernelHasNoGpu(const std::string& proc_root) {
  const int gpus = KernelNvidiaGpus(proc_root);
  return gpus == 0
             ? absl::OkStatus()
             : absl::UnavailableError(fmt::format(
                   "the kernel's NVIDIA driver lists {} GPUs, but this process finds no usable "
                   "libnvidia-ml.so.1 or lacks the device files /dev/nvidia*",
                   gpus));
}

absl::StatusOr<NodeFacts> WithCpu(const NodeProbeOptions& options, const DeclaredFacts& declared,
                                  NodeFacts probed) {
  if (!declared.cpu.has_value() && !declared.cpu_class.has_value()) {
    CW_RETURN_IF_ERROR(ProbeCpu(options.proc_root, probed));
  }
  return Combine(declared, probed);
}

}  // namespace

absl::StatusOr<NodeFacts> ProbeNode(const NodeProbeOptions& options, gpu::Probe& gpu_probe) {
  CW_ASSIGN_OR_RETURN(const DeclaredFacts declared, ReadDeclared(options.facts_file));
  NodeFacts probed;
  if (!declared.gpu_type.has_value()) {
    CW_RETURN_IF_ERROR(ProbeGpu(options, gpu_probe, probed));
    if (options.describes_node && probed.gpu_source == "none") {
      CW_RETURN_IF_ERROR(CheckKernelHasNoGpu(options.proc_root));
    }
  }
  return WithCpu(options, declared, probed);
}

absl::StatusOr<NodeFacts> ProbeNodeWithoutGpu(const NodeProbeOptions& options) {
  CW_ASSIGN_OR_RETURN(const DeclaredFacts declared, ReadDeclared(options.facts_file));
  return WithCpu(options, declared, {.gpu_type = {}, .gpu_source = "none"});
}

}  // namespace cachewarm::probe

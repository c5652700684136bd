// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/dir.h"
#include "lib/fs/file.h"
#include "lib/gpu/probe.h"

namespace cachewarm::cli {
namespace {

constexpr int64_t kFactsBytesMax = 64 << 10;
constexpr int64_t kCpuBytesMax = 16 << 20;

// The user's path: links are followed.
absl::StatusOr<std::string> ReadUserFile(const std::string& path, int64_t bytes_max) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) {
    return absl::NotFoundError(fmt::format("{}: {}", path, error.message()));
  }
  CW_ASSIGN_OR_RETURN(const fs::Dir dir, fs::Dir::Open(real.parent_path().string()));
  return fs::ReadFile(dir, real.filename().string(), bytes_max);
}

absl::StatusOr<fingerprint::DeclaredFacts> ReadDeclared(const std::string& path) {
  if (path.empty()) {
    return fingerprint::DeclaredFacts{};
  }
  CW_ASSIGN_OR_RETURN(const std::string text, ReadUserFile(path, kFactsBytesMax));
  auto declared = fingerprint::ParseDeclaredFacts(text);
  if (!declared.ok()) {
    return Annotate(declared.status(), path);
  }
  return declared;
}

absl::Status AskDriver(fingerprint::NodeFacts& facts) {
  CW_ASSIGN_OR_RETURN(const gpu::Devices found, gpu::MakeCudaProbe()->Run());
  std::vector<fingerprint::GpuDevice> devices;
  for (const gpu::Device& device : found.devices) {
    devices.push_back({.name = device.name,
                       .sm_major = device.sm_major,
                       .sm_minor = device.sm_minor,
                       .mig_profile = device.mig_profile});
  }
  facts.gpu_type = fingerprint::GpuTypeOf(devices);
  facts.driver_version = found.driver_version;
  facts.device_count = static_cast<int>(devices.size());
  facts.gpu_source = found.source;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<fingerprint::NodeFacts> FindMachineFacts(const std::string& facts_file,
                                                        const std::string& proc_root) {
  CW_ASSIGN_OR_RETURN(const fingerprint::DeclaredFacts declared, ReadDeclared(facts_file));
  fingerprint::NodeFacts probed;
  if (!declared.gpu_type.has_value()) {
    CW_RETURN_IF_ERROR(AskDriver(probed));
  }
  if (!declared.cpu.has_value() && !declared.cpu_class.has_value()) {
    CW_ASSIGN_OR_RETURN(const std::string text, ReadUserFile(proc_root + "/cpuinfo", kCpuBytesMax));
    CW_ASSIGN_OR_RETURN(probed.cpu, fingerprint::ParseProcCpu(text));
    probed.cpu_class = fingerprint::CpuClassOf(probed.cpu);
    probed.cpu_source = "proc";
  }
  return fingerprint::Combine(declared, probed);
}

}  // namespace cachewarm::cli

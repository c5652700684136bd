// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/gpu/probe.h"

namespace cachewarm::gpu {
namespace {

namespace stdfs = std::filesystem;

constexpr std::string_view kNodes = "/sys/class/kfd/kfd/topology/nodes";
constexpr size_t kFileMax = 64U << 10U;
constexpr size_t kNodesMax = 1024;
constexpr uint64_t kGiB = uint64_t{1} << 30U;

using Properties = std::map<std::string, uint64_t, std::less<>>;

// Returns the content of a small file; PERMISSION_DENIED if the kernel refuses it, NOT_FOUND if it
// cannot be read for another reason.
absl::StatusOr<std::string> ReadSmall(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  int error = errno;
  std::string text;
  if (file >= 0) {
    std::array<char, 4096> block{};
    ssize_t count = 0;
    while (text.size() < kFileMax && (count = ::read(file, block.data(), block.size())) > 0) {
      text.append(block.data(), static_cast<size_t>(count));
    }
    error = count < 0 ? errno : 0;
    ::close(file);
  }
  if (error == EPERM || error == EACCES) {
    return absl::PermissionDeniedError(path);
  }
  return error == 0 ? absl::StatusOr<std::string>(std::move(text)) : absl::NotFoundError(path);
}

// Parses lines of "name number"; ignores other lines.
Properties ParseProperties(std::string_view text) {
  Properties out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t space = line.find(' ');
    uint64_t value = 0;
    if (space != std::string_view::npos &&
        std::from_chars(line.data() + space + 1, line.data() + line.size(), value).ec ==
            std::errc()) {
      out[std::string(line.substr(0, space))] = value;
    }
  }
  return out;
}

uint64_t ValueOf(const Properties& properties, std::string_view name) {
  const auto found = properties.find(name);
  return found == properties.end() ? 0 : found->second;
}

std::vector<std::string> SubdirectoriesOf(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code error;
  for (stdfs::directory_iterator it(directory, error), end;
       !error && it != end && out.size() < kNodesMax; it.increment(error)) {
    out.push_back(it->path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Returns the bytes of the memory on the device: the banks of the heaps 1 (visible to the CPU) and
// 2 (not visible).
uint64_t MemoryOf(const std::string& node) {
  uint64_t bytes = 0;
  for (const std::string& bank : SubdirectoriesOf(node + "/mem_banks")) {
    if (const auto text = ReadSmall(bank + "/properties"); text.ok()) {
      const Properties properties = ParseProperties(*text);
      const uint64_t heap = ValueOf(properties, "heap_type");
      bytes += heap == 1 || heap == 2 ? ValueOf(properties, "size_in_bytes") : 0;
    }
  }
  return bytes;
}

// Returns "gfx942" for 90402 and "gfx90a" for 90010: major, minor and stepping, the last two in
// hexadecimal digits. Empty if the number is implausible.
std::string ArchitectureOf(uint64_t version) {
  const uint64_t major = version / 10'000;
  const uint64_t minor = version / 100 % 100;
  const uint64_t stepping = version % 100;
  return major == 0 || major > 99 || minor > 15 || stepping > 15
             ? std::string()
             : fmt::format("gfx{}{:x}{:x}", major, minor, stepping);
}

// The name contains the properties that compiled code and autotuning depend on: PCI device, compute
// units and memory. A partition of a GPU has fewer compute units and less memory than the whole
// GPU. The name in sysfs is of no use: it is "ip discovery" for all current GPUs.
Device Describe(const Properties& properties, const std::string& node) {
  const uint64_t per_unit = std::max<uint64_t>(ValueOf(properties, "simd_per_cu"), 1);
  const uint64_t memory = MemoryOf(node);
  return {
      .vendor = Vendor::kAmd,
      .name = fmt::format("device-{:04x}-{}cu-{}gb", ValueOf(properties, "device_id"),
                          ValueOf(properties, "simd_count") / per_unit, (memory + kGiB / 2) / kGiB),
      .architecture = ArchitectureOf(ValueOf(properties, "gfx_target_version")),
      .memory_bytes = memory};
}

class KfdProbe final : public Probe {
 public:
  explicit KfdProbe(std::string root) : root_(std::move(root)) {}

  absl::StatusOr<Devices> Run() override {
    Devices out{.devices = {}, .driver_version = {}, .source = "none"};
    for (const std::string& node : SubdirectoriesOf(root_ + std::string(kNodes))) {
      const absl::StatusOr<std::string> text = ReadSmall(node + "/properties");
      if (absl::IsPermissionDenied(text.status())) {
        ++out.hidden;
        continue;
      }
      const Properties properties = text.ok() ? ParseProperties(*text) : Properties();
      if (ValueOf(properties, "simd_count") == 0) {
        continue;  // a CPU, which the kernel lists too
      }
      Device device = Describe(properties, node);
      if (device.architecture.empty()) {
        return absl::UnavailableError(fmt::format(
            "{}/properties: gfx_target_version {} is not an architecture; update the amdgpu driver",
            node, ValueOf(properties, "gfx_target_version")));
      }
      out.devices.push_back(std::move(device));
    }
    if (!out.devices.empty()) {
      out.source = "kfd";
      const auto version = ReadSmall(root_ + "/sys/module/amdgpu/version");
      out.driver_version = version.ok() ? version->substr(0, version->find('\n')) : std::string();
    }
    return out;
  }

 private:
  std::string root_;
};

class JoinedProbe final : public Probe {
 public:
  explicit JoinedProbe(std::vector<std::unique_ptr<Probe>> probes) : probes_(std::move(probes)) {}

  absl::StatusOr<Devices> Run() override {
    Devices out{.devices = {}, .driver_version = {}, .source = "none"};
    for (const std::unique_ptr<Probe>& probe : probes_) {
      CW_ASSIGN_OR_RETURN(Devices found, probe->Run());
      out.hidden += found.hidden;
      if (out.devices.empty() && found.source != "none") {
        out.source = found.source;
        out.driver_version = found.driver_version;
      }
      std::move(found.devices.begin(), found.devices.end(), std::back_inserter(out.devices));
    }
    return out;
  }

 private:
  std::vector<std::unique_ptr<Probe>> probes_;
};

}  // namespace

std::unique_ptr<Probe> MakeKfdProbe(const std::string& root) {
  return std::make_unique<KfdProbe>(root);
}

std::unique_ptr<Probe> JoinProbes(std::vector<std::unique_ptr<Probe>> probes) {
  return std::make_unique<JoinedProbe>(std::move(probes));
}

std::unique_ptr<Probe> MakeProbe(const std::vector<std::string>& driver_roots) {
  std::vector<std::unique_ptr<Probe>> probes;
  probes.push_back(MakeCudaProbe(driver_roots));
  probes.push_back(MakeKfdProbe(""));
  return JoinProbes(std::move(probes));
}

}  // namespace cachewarm::gpu

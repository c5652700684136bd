// SPDX-License-Identifier: Apache-2.0
#include "lib/probe/driver_state.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>

#include "fmt/format.h"

namespace cachewarm::probe {
namespace {

namespace stdfs = std::filesystem;

constexpr size_t kNamesMax = 4096;

void AppendFile(const std::string& path, std::string& out) {
  std::array<char, 4096> block{};
  std::ifstream file(path, std::ios::binary);
  file.read(block.data(), block.size());
  out += fmt::format("{}={}\n", path,
                     std::string_view(block.data(), static_cast<size_t>(file.gcount())));
}

// Returns the sorted names in a directory; empty if it cannot be read.
std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (stdfs::directory_iterator it(directory, error), end;
       !error && it != end && names.size() < kNamesMax; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void AppendNames(const std::string& directory, const std::function<bool(const std::string&)>& want,
                 std::string& out) {
  for (const std::string& name : NamesIn(directory)) {
    if (want(name)) {
      out += fmt::format("{}/{}\n", directory, name);
    }
  }
}

void AppendIdentity(const std::string& path, std::string& out) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0) {
    out += fmt::format("{}: {} {} {} {}.{}\n", path, found.st_dev, found.st_ino, found.st_size,
                       found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
  }
}

}  // namespace

std::string DriverState(const std::string& root, const std::vector<std::string>& libraries) {
  std::string out;
  for (const char* path : {"/proc/driver/nvidia/version", "/sys/module/nvidia/version",
                           "/sys/module/amdgpu/version"}) {
    AppendFile(root + path, out);
  }
  const auto any = [](const std::string&) { return true; };
  AppendNames(root + "/proc/driver/nvidia/gpus", any, out);
  AppendNames(root + "/sys/class/kfd/kfd/topology/nodes", any, out);
  AppendNames(root + "/dev/dri", any, out);
  AppendNames(
      root + "/dev",
      [](const std::string& name) { return name.starts_with("nvidia") || name == "kfd"; }, out);
  for (const std::string& library : libraries) {
    AppendIdentity(library, out);
  }
  return out;
}

int KernelNvidiaGpus(const std::string& proc_root) {
  return static_cast<int>(NamesIn(proc_root + "/driver/nvidia/gpus").size());
}

}  // namespace cachewarm::probe

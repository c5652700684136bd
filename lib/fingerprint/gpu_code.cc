// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/gpu_code.h"

#include <algorithm>
#include <optional>

namespace cachewarm::fingerprint {
namespace {

// An NVIDIA architecture: version 90 and suffix 'a' in "sm_90a"; suffix 0 if there is none.
struct Version {
  int number = 0;
  char suffix = 0;

  int major() const { return number / 10; }
};

std::optional<Version> ParseVersion(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return std::nullopt;
  }
  text.remove_prefix(prefix.size());
  Version version;
  size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    version.number = version.number * 10 + (text[digits] - '0');
  }
  if (digits < 2 || digits > 4) {
    return std::nullopt;
  }
  text.remove_prefix(digits);
  if (text == "a" || text == "f") {
    version.suffix = text.front();
    text = {};
  }
  return text.empty() ? std::optional(version) : std::nullopt;
}

bool IsEmbedded(int number) {
  static constexpr int kEmbedded[] = {53, 62, 72, 87, 101};
  return std::find(std::begin(kEmbedded), std::end(kEmbedded), number) != std::end(kEmbedded);
}

bool IsSameFamily(const Version& code, const Version& gpu) {
  return code.major() == gpu.major() && code.number <= gpu.number && !IsEmbedded(code.number) &&
         !IsEmbedded(gpu.number);
}

bool RunsPtx(const Version& code, const Version& gpu) {
  return code.suffix == 'f' ? IsSameFamily(code, gpu)
                            : code.suffix == 0 && code.number <= gpu.number;
}

}  // namespace

bool RunsOn(std::string_view code, std::string_view gpu) {
  if (gpu.starts_with("gfx")) {
    return code == gpu;
  }
  const std::optional<Version> device = ParseVersion(gpu, "sm_");
  if (!device.has_value()) {
    return false;
  }
  if (const auto ptx = ParseVersion(code, "compute_"); ptx.has_value()) {
    return ptx->number == device->number || RunsPtx(*ptx, *device);
  }
  const std::optional<Version> binary = ParseVersion(code, "sm_");
  return binary.has_value() && (binary->number == device->number ||
                                (binary->suffix != 'a' && IsSameFamily(*binary, *device)));
}

std::vector<std::string> ArchitecturesOf(std::string_view gpu_type) {
  std::vector<std::string> out;
  const size_t name = gpu_type.find('/');
  const size_t begin = name == std::string_view::npos ? name : gpu_type.find('/', name + 1);
  if (begin == std::string_view::npos) {
    return out;
  }
  std::string_view rest = gpu_type.substr(begin + 1);
  rest = rest.substr(0, rest.find('/'));
  while (!rest.empty()) {
    const size_t plus = std::min(rest.find('+'), rest.size());
    out.emplace_back(rest.substr(0, plus));
    rest.remove_prefix(std::min(plus + 1, rest.size()));
  }
  return out;
}

bool HasCodeFor(const std::vector<std::string>& code, std::string_view gpu_type) {
  const std::vector<std::string> gpus = ArchitecturesOf(gpu_type);
  return code.empty() || gpus.empty() ||
         std::any_of(code.begin(), code.end(), [&](const std::string& each) {
           return std::any_of(gpus.begin(), gpus.end(),
                              [&](const std::string& gpu) { return RunsOn(each, gpu); });
         });
}

}  // namespace cachewarm::fingerprint

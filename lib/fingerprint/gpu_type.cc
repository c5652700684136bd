// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/gpu_type.h"

#include <algorithm>
#include <set>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace cachewarm::fingerprint {
namespace {

constexpr size_t kCleanMax = 63;
constexpr size_t kTypeMax = 253;

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '+' || c == '-';
}

// Converts to lower case, replaces each run of "-" and characters outside [a-z0-9.+] by one "-",
// removes "-" at both ends and truncates to kCleanMax bytes.
std::string Clean(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const char kept = IsNameChar(lower) ? lower : '-';
    if (kept != '-' || (!out.empty() && out.back() != '-')) {
      out += kept;
    }
  }
  out.resize(std::min(out.size(), kCleanMax));
  while (!out.empty() && out.back() == '-') {
    out.pop_back();
  }
  return out;
}

struct Parts {
  std::string vendor;
  std::string name;
  std::string architecture;
  std::string mig;
};

Parts PartsOf(const GpuDevice& device) {
  Parts parts{.vendor = Clean(device.vendor),
              .name = Clean(device.name),
              .architecture = Clean(device.architecture),
              .mig = Clean(device.mig_profile)};
  if (parts.name.starts_with(parts.vendor + "-")) {
    parts.name.erase(0, parts.vendor.size() + 1);
  }
  // Remove the suffixes by which GPU feature discovery marks time slicing and single-strategy MIG
  // in the product label.
  if (constexpr std::string_view kShared = "-shared"; parts.name.ends_with(kShared)) {
    parts.name.resize(parts.name.size() - kShared.size());
  }
  constexpr std::string_view kMig = "-mig-";
  if (const size_t at = parts.name.find(kMig); at != std::string::npos) {
    if (parts.mig.empty()) {
      parts.mig = parts.name.substr(at + kMig.size());
    }
    parts.name.resize(at);
  }
  if (parts.name.empty()) {
    parts.name = "unknown";
  }
  if (parts.architecture.empty()) {
    parts.architecture = fmt::format("sm_{}{}", std::clamp(device.sm_major, 0, 999),
                                     std::clamp(device.sm_minor, 0, 9));
  }
  return parts;
}

// Joins `kinds` by "+" and truncates the result at a limit that no real machine reaches.
std::string Join(const std::set<std::string>& kinds, size_t bytes_max) {
  std::string out = fmt::format("{}", fmt::join(kinds, "+"));
  out.resize(std::min(out.size(), bytes_max));
  return out;
}

bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsNameChar);
}

// True for "sm_" and two to four digits, and for "gfx" and three to five lower-case hex digits.
bool IsArchitecture(std::string_view text) {
  const bool is_amd = text.starts_with("gfx");
  if (!is_amd && !text.starts_with("sm_")) {
    return false;
  }
  text.remove_prefix(3);
  const std::string_view allowed = is_amd ? "0123456789abcdef" : "0123456789";
  const size_t least = is_amd ? 3 : 2;
  return text.find_first_not_of(allowed) == std::string_view::npos && text.size() >= least &&
         text.size() <= least + 2;
}

// True for one or several architectures: "sm_90", "sm_80+sm_90".
bool AreArchitectures(std::string_view text) {
  for (size_t plus = text.find('+'); plus != std::string_view::npos; plus = text.find('+')) {
    if (!IsArchitecture(text.substr(0, plus))) {
      return false;
    }
    text.remove_prefix(plus + 1);
  }
  return IsArchitecture(text);
}

}  // namespace

std::string GpuTypeOf(const GpuDevice& device) {
  return GpuTypeOf(std::vector<GpuDevice>{device});
}

std::string GpuTypeOf(const std::vector<GpuDevice>& devices) {
  if (devices.empty()) {
    return std::string(kCpuOnly);
  }
  std::set<std::string> vendors;
  std::set<std::string> names;
  std::set<std::string> architectures;
  std::set<std::string> migs;
  for (const GpuDevice& device : devices) {
    Parts parts = PartsOf(device);
    vendors.insert(std::move(parts.vendor));
    names.insert(std::move(parts.name));
    architectures.insert(std::move(parts.architecture));
    if (!parts.mig.empty()) {
      migs.insert(std::move(parts.mig));
    }
  }
  std::string type =
      fmt::format("{}/{}/{}", Join(vendors, 20), Join(names, 120), Join(architectures, 40));
  if (!migs.empty()) {
    type += fmt::format("/mig-{}", Join(migs, 60));
  }
  return type;
}

bool IsGpuType(std::string_view text) {
  if (text == kCpuOnly) {
    return true;
  }
  std::vector<std::string_view> parts;
  for (std::string_view rest = text; parts.size() < 5;) {
    const size_t slash = rest.find('/');
    parts.push_back(rest.substr(0, slash));
    if (slash == std::string_view::npos) {
      break;
    }
    rest.remove_prefix(slash + 1);
  }
  const bool shape = text.size() <= kTypeMax && (parts.size() == 3 || parts.size() == 4);
  return shape && IsName(parts[0]) && IsName(parts[1]) && AreArchitectures(parts[2]) &&
         (parts.size() == 3 || (parts[3].starts_with("mig-") && IsName(parts[3].substr(4))));
}

}  // namespace cachewarm::fingerprint

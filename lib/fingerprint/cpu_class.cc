// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/cpu_class.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/base/digest.h"
#include "lib/base/hex.h"

namespace cachewarm::fingerprint {
namespace {

constexpr size_t kTextMax = 16U << 20U;
constexpr size_t kNameMax = 40;

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::set<std::string, std::less<>> Words(std::string_view text) {
  std::set<std::string, std::less<>> words;
  while (!(text = Trim(text)).empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.emplace(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

// The fields of one "processor" block of /proc/cpuinfo, by the name before the colon.
using Block = std::map<std::string, std::string, std::less<>>;

std::vector<Block> Blocks(std::string_view text) {
  std::vector<Block> blocks;
  bool open = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      open = open && !line.empty();
      continue;
    }
    if (!open) {
      blocks.emplace_back();
      open = true;
    }
    blocks.back().emplace(Trim(line.substr(0, colon)), Trim(line.substr(colon + 1)));
  }
  return blocks;
}

std::string Field(const Block& block, std::string_view name) {
  const auto found = block.find(name);
  return found == block.end() ? std::string() : found->second;
}

std::string VendorName(const std::string& vendor) {
  if (vendor == "AuthenticAMD") {
    return "amd";
  }
  return vendor == "GenuineIntel" ? "intel" : vendor;
}

bool IsX86(const Block& block) {
  return block.contains("vendor_id") && block.contains("flags");
}
bool IsArm64(const Block& block) {
  return block.contains("CPU implementer") && block.contains("Features");
}

// Merges the processor blocks of one machine: collects all names, and keeps the flags that every
// processor has.
struct Merged {
  std::set<std::string> vendors;
  std::set<std::string> families;
  std::set<std::string> models;
  std::set<std::string, std::less<>> flags;
  bool is_empty = true;

  void Add(std::array<std::string, 3> names, std::set<std::string, std::less<>> words) {
    vendors.insert(std::move(names[0]));
    families.insert(std::move(names[1]));
    models.insert(std::move(names[2]));
    if (is_empty) {
      flags = std::move(words);
      is_empty = false;
    } else {
      std::erase_if(flags, [&words](const std::string& flag) { return !words.contains(flag); });
    }
  }
};

// Converts to lower case, drops characters outside [a-z0-9.+] and truncates to kNameMax bytes.
std::string CleanName(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool kept = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9') ||
                      lower == '.' || lower == '+';
    if (kept && out.size() < kNameMax) {
      out += lower;
    }
  }
  return out;
}

bool HasAll(const CpuFacts& cpu, std::initializer_list<std::string_view> wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&cpu](std::string_view flag) {
    return std::binary_search(cpu.flags.begin(), cpu.flags.end(), flag);
  });
}

// Returns the level of the instruction set, the first part of a CPU class. For x86-64 it is the
// level of psABI 1.0 §3.1.1. The kernel calls SSE3 "pni" and LZCNT "abm", and does not list
// OSXSAVE, so OSXSAVE is not checked.
std::string_view Level(const CpuFacts& cpu) {
  if (cpu.architecture == "aarch64") {
    if (HasAll(cpu, {"sve2"})) {
      return "aarch64-sve2";
    }
    return HasAll(cpu, {"sve"}) ? "aarch64-sve" : "aarch64";
  }
  const bool v2 = HasAll(cpu, {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"});
  const bool v3 = v2 && HasAll(cpu, {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"});
  const bool v4 = v3 && HasAll(cpu, {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});
  return v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : v2 ? "x86-64-v2" : "x86-64";
}

bool AllOf(std::string_view text, std::string_view extra) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [extra](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           extra.find(c) != std::string_view::npos;
  });
}

}  // namespace

absl::StatusOr<CpuFacts> ParseProcCpu(std::string_view text) {
  if (text.size() > kTextMax) {
    return absl::InvalidArgumentError("cpuinfo is longer than 16 MiB");
  }
  Merged merged;
  bool x86 = false;
  bool arm64 = false;
  for (const Block& block : Blocks(text)) {
    if (IsX86(block)) {
      x86 = true;
      merged.Add({VendorName(Field(block, "vendor_id")), Field(block, "cpu family"),
                  Field(block, "model")},
                 Words(Field(block, "flags")));
    } else if (IsArm64(block)) {
      arm64 = true;
      merged.Add({Field(block, "CPU implementer"), "", Field(block, "CPU part")},
                 Words(Field(block, "Features")));
    }
  }
  if (x86 == arm64) {
    return absl::InvalidArgumentError(
        "cpuinfo describes neither an x86-64 nor an aarch64 processor; declare cpuClass or cpu in "
        "the node facts file");
  }
  return NormaliseCpu({.architecture = x86 ? "x86_64" : "aarch64",
                       .vendor = fmt::format("{}", fmt::join(merged.vendors, "+")),
                       .family = fmt::format("{}", fmt::join(merged.families, "+")),
                       .model = fmt::format("{}", fmt::join(merged.models, "+")),
                       .flags = {merged.flags.begin(), merged.flags.end()}});
}

absl::StatusOr<CpuFacts> NormaliseCpu(CpuFacts facts) {
  const std::vector<std::string_view>& known = NativeFlags(facts.architecture);
  if (known.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("cpu.architecture: \"{}\" is not supported; expected x86_64 or aarch64",
                    CleanName(facts.architecture)));
  }
  facts.vendor = CleanName(facts.vendor);
  facts.family = CleanName(facts.family);
  facts.model = CleanName(facts.model);
  if (facts.vendor.empty()) {
    return absl::InvalidArgumentError("cpu.vendor: is required");
  }
  if (facts.model.empty()) {
    return absl::InvalidArgumentError("cpu.model: is required");
  }
  std::erase_if(facts.flags, [&known](const std::string& flag) {
    return !std::binary_search(known.begin(), known.end(), std::string_view(flag));
  });
  std::sort(facts.flags.begin(), facts.flags.end());
  facts.flags.erase(std::unique(facts.flags.begin(), facts.flags.end()), facts.flags.end());
  return facts;
}

std::string CpuClassOf(const CpuFacts& facts) {
  const std::string exact = fmt::format("{}\n{}\n{}\n{}\n{}\n", facts.architecture, facts.vendor,
                                        facts.family, facts.model, fmt::join(facts.flags, " "));
  const std::string name = facts.family.empty()
                               ? fmt::format("{}-{}", facts.vendor, facts.model)
                               : fmt::format("{}-{}-{}", facts.vendor, facts.family, facts.model);
  return fmt::format("{}/{}/{}", Level(facts), name, DigestOf(exact).hex().substr(0, 8));
}

bool IsCpuClass(std::string_view text) {
  const size_t first = text.find('/');
  const size_t last = text.rfind('/');
  if (first == std::string_view::npos || first == last || text.size() > 160) {
    return false;
  }
  const std::string_view hash = text.substr(last + 1);
  return AllOf(text.substr(0, first), "-") &&
         AllOf(text.substr(first + 1, last - first - 1), "-.+") && hash.size() == 8 &&
         IsLowerHex(hash);
}

}  // namespace cachewarm::fingerprint

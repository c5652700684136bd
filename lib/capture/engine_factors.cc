// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/engine_factors.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "lib/base/hmac.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/fs/file.h"
#include "lib/fs/tree.h"

namespace cachewarm::capture {
namespace {

using codec::Json;

constexpr std::string_view kFile = "cache_key_factors.json";
constexpr std::string_view kKeysDirectory = "vllm/torch_compile_cache";
constexpr codec::JsonLimits kFactorsJson{
    .bytes_max = size_t{kEngineFactorsFileBytes}, .depth_max = 8, .values_max = 16'384};
// Directories are at most this deep above a directory of a rank: torch_aot_compile/<hash>.
constexpr size_t kKeyDepthMax = 2;
constexpr fs::WalkLimits kKeysWalk{.entries_max = 100'000, .name_bytes_max = 8 << 20};
// 64 bits, as operator/factors.
constexpr size_t kFactorDigits = 16;
constexpr size_t kIdDigits = 8;  // of the salt and of the part

std::string DigitsOf(std::string_view salt, std::string_view text, size_t count) {
  return HmacOf(salt, text).hex().substr(0, count);
}

bool IsFactorName(std::string_view name) {
  return !name.empty() && name.size() <= kEngineFactorNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
                  c == '.';
         });
}

// Returns true for the names that decide whether two sides are comparable.
bool IsId(std::string_view name) {
  return name == kEngineSaltFactor || name == kEnginePartFactor;
}

bool HaveEqual(std::string_view name, const EngineFactors& a, const EngineFactors& b) {
  const auto of_a = a.find(std::string(name));
  const auto of_b = b.find(std::string(name));
  return of_a != a.end() && of_b != b.end() && of_a->second == of_b->second;
}

// Adds the leaves of one object. The recursion is as deep as the JSON, which is limited.
absl::Status AddLeaves(const Json& object, const std::string& prefix, std::string_view salt,
                       EngineFactors& out) {
  for (const auto& [member, value] : object.items()) {
    const std::string name = prefix.empty() ? member : fmt::format("{}.{}", prefix, member);
    if (!IsFactorName(name) || IsId(name)) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: the name of a factor is \"{}\" or \"{}\", is longer than {} bytes or has "
          "characters other than letters, digits, \"_\", \"-\" and \".\"",
          kFile, kEngineSaltFactor, kEnginePartFactor, kEngineFactorNameBytes));
    }
    if (value.is_object()) {
      CW_RETURN_IF_ERROR(AddLeaves(value, name, salt, out));
      continue;
    }
    if (out.size() == kEngineFactorsMax) {
      return absl::InvalidArgumentError(
          fmt::format("{}: more than {} factors", kFile, kEngineFactorsMax));
    }
    const std::string text = fmt::format("vllm/{}={}", name, codec::DumpJson(value));
    if (!out.emplace(name, DigitsOf(salt, text, kFactorDigits)).second) {
      return absl::InvalidArgumentError(fmt::format("{}: two factors have one name", kFile));
    }
  }
  return absl::OkStatus();
}

// A file that was found.
struct FactorsFile {
  std::string path;
  std::string part;  // rank and part of the model: "rank_0_0/backbone"
  int64_t mtime_ns = 0;
};

// Returns the number of directories above that of the rank; nullopt if the path has none.
std::optional<size_t> RankDepth(const std::vector<std::string>& names) {
  const auto rank = std::find_if(names.begin(), names.end(),
                                 [](const std::string& name) { return name.starts_with("rank_"); });
  return rank == names.end() ? std::nullopt
                             : std::optional(static_cast<size_t>(rank - names.begin()));
}

// Returns true if a directory may contain a file of factors: a key, a rank or a part of the model.
// Directories of compiled code have thousands of names.
bool MayContain(const std::vector<std::string>& names) {
  const std::optional<size_t> rank = RankDepth(names);
  return rank.has_value() ? names.size() <= *rank + 2
                          : names.size() <= kKeyDepthMax && names.back() != "inductor_cache" &&
                                names.back() != "triton_cache";
}

int64_t Nanoseconds(WallTime time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

}  // namespace

absl::StatusOr<EngineFactors> HashEngineFactors(std::string_view text, std::string_view part,
                                                std::string_view salt) {
  if (salt.size() < kEngineSaltBytesMin) {
    return absl::FailedPreconditionError(
        fmt::format("the salt is shorter than {} bytes", kEngineSaltBytesMin));
  }
  const absl::StatusOr<Json> parsed = codec::ParseJson(text, kFactorsJson);
  if (!parsed.ok() || !parsed->is_object()) {
    // The parser's message may quote the text.
    return absl::InvalidArgumentError(fmt::format(
        "{}: expected a JSON object of at most {} bytes, {} levels and {} values", kFile,
        kFactorsJson.bytes_max, kFactorsJson.depth_max, kFactorsJson.values_max));
  }
  EngineFactors out;
  CW_RETURN_IF_ERROR(AddLeaves(*parsed, "", salt, out));
  out.emplace(kEngineSaltFactor, DigitsOf(salt, "salt", kIdDigits));
  out.emplace(kEnginePartFactor, DigitsOf(salt, fmt::format("part={}", part), kIdDigits));
  return out;
}

absl::StatusOr<EngineFactors> ReadEngineFactors(
    const fs::Dir& tree, WallTime begin, WallTime end, std::string_view salt,
    const std::function<void(const std::string& path)>& on_opening) {
  std::optional<FactorsFile> best;
  const auto visit = [&](const fs::WalkEntry& entry) {
    const std::vector<std::string> names = absl::StrSplit(entry.path, '/');
    if (entry.stat.type == fs::FileType::kDirectory) {
      return MayContain(names) ? fs::WalkNext::kContinue : fs::WalkNext::kSkipDirectory;
    }
    const std::optional<size_t> rank = RankDepth(names);
    if (entry.stat.type != fs::FileType::kFile || !rank.has_value() || names.size() != *rank + 3 ||
        names.back() != kFile || entry.stat.mtime_ns < Nanoseconds(begin) ||
        entry.stat.mtime_ns > Nanoseconds(end)) {
      return fs::WalkNext::kContinue;
    }
    FactorsFile file{.path = fmt::format("{}/{}", kKeysDirectory, entry.path),
                     .part = fmt::format("{}/{}", names[*rank], names[*rank + 1]),
                     .mtime_ns = entry.stat.mtime_ns};
    if (!best.has_value() ||
        std::tuple(file.part, -file.mtime_ns) < std::tuple(best->part, -best->mtime_ns)) {
      best = std::move(file);
    }
    return fs::WalkNext::kContinue;
  };
  CW_RETURN_IF_ERROR(fs::Walk(tree, kKeysDirectory, kKeysWalk, visit));
  if (!best.has_value()) {
    return absl::NotFoundError(fmt::format("{}: none was written", kFile));
  }
  if (on_opening) {
    on_opening(best->path);
  }
  CW_ASSIGN_OR_RETURN(const std::string text,
                      fs::ReadFile(tree, best->path, kEngineFactorsFileBytes));
  return HashEngineFactors(text, best->part, salt);
}

std::vector<std::string> DifferingFactors(const EngineFactors& builder,
                                          const EngineFactors& start) {
  if (!HaveEqual(kEngineSaltFactor, builder, start) ||
      !HaveEqual(kEnginePartFactor, builder, start)) {
    return {};
  }
  std::vector<std::string> names;
  for (const auto& [name, hash] : builder) {
    const auto own = start.find(name);
    if (own == start.end() || own->second != hash) {
      names.push_back(name);
    }
  }
  for (const auto& [name, hash] : start) {
    if (!builder.contains(name)) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::tuple(!a.starts_with(kEngineVariablePrefix), a) <
           std::tuple(!b.starts_with(kEngineVariablePrefix), b);
  });
  names.resize(std::min(names.size(), kDifferingFactorsMax));
  return names;
}

}  // namespace cachewarm::capture

// SPDX-License-Identifier: Apache-2.0
// What a user may write in spec.caches.
#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/api/json/limits.h"
#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"
#include "lib/caches/kind.h"

namespace cachewarm::caches {
namespace {

constexpr size_t kNameMax = 40;
constexpr size_t kEnvMax = 128;
constexpr size_t kChoicePathMax = 128;
// 64 warmups of these have room in one NodeCache, beside their bundles and what the agent says of
// them: etcd takes 1.5 MiB.
constexpr size_t kTogetherMax = 8U << 10U;
constexpr size_t kBytesPerGlob = 3;     // quotes and comma
constexpr size_t kBytesPerCache = 150;  // names of fields, and what the API server notes of owners

absl::Status Bad(size_t index, std::string_view field, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("spec.caches[{}]{}: {}", index, field, problem));
}

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kNameMax &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '-'; });
}

bool IsEnvName(std::string_view text) {
  return !text.empty() && text.size() <= kEnvMax && IsLetter(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsLetter(c) || IsDigit(c); });
}

// Components of [A-Za-z0-9._-] that neither are nor begin with a dot.
bool IsCachePath(std::string_view path) {
  if (path.empty() || path.size() > kChoicePathMax) {
    return false;
  }
  bool start = true;
  for (const char c : path) {
    if (start && !IsLetter(c) && !IsDigit(c)) {
      return false;
    }
    start = c == '/';
    if (!start && !IsLetter(c) && !IsDigit(c) && c != '.' && c != '-') {
      return false;
    }
  }
  return !start;
}

// One of the two holds the other, or they are equal.
bool Overlap(std::string_view a, std::string_view b) {
  const std::string_view shorter = a.size() < b.size() ? a : b;
  const std::string_view longer = a.size() < b.size() ? b : a;
  return longer.starts_with(shorter) &&
         (longer.size() == shorter.size() || longer[shorter.size()] == '/');
}

// Variables that decide more than a cache's place: pointing them below the mount breaks a pod.
bool IsReserved(std::string_view env) {
  static constexpr std::string_view kReserved[] = {
      "HOME", "PATH", "PYTHONPATH", "USER", "LD_PRELOAD", "LD_LIBRARY_PATH", "PWD", "SHELL"};
  return std::find(std::begin(kReserved), std::end(kReserved), env) != std::end(kReserved);
}

// Printable ASCII that JSON holds as it is: Go's writes <, >, & and control characters as six
// bytes.
bool IsGlob(std::string_view text) {
  return !text.empty() && text.size() <= api::json::kGlobBytes && text.front() != '/' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return c >= ' ' && c <= '~' &&
                  std::string_view("\"&<>\\").find(c) == std::string_view::npos;
         });
}

absl::Status CheckGlobs(size_t index, const api::CacheChoice& choice) {
  if (choice.include.size() > api::json::kIncludesMax) {
    return Bad(index, ".include", fmt::format("more than {} patterns", api::json::kIncludesMax));
  }
  for (const std::string& glob : choice.include) {
    if (!IsGlob(glob)) {
      return Bad(index, ".include",
                 fmt::format("each pattern is 1 to {} printable ASCII characters, none of \"&<>\\, "
                             "and relative to path; ? stands for any other character",
                             api::json::kGlobBytes));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckUserCache(size_t index, const api::CacheChoice& choice) {
  if (!IsName(choice.name)) {
    return Bad(index, ".name", fmt::format("expected 1 to {} of a-z, 0-9 and -", kNameMax));
  }
  if (FindKind(choice.name) != nullptr) {
    return Bad(
        index, ".name",
        fmt::format("{} is a preset; leave env out, or give the cache another name", choice.name));
  }
  if (!IsEnvName(choice.env) || IsReserved(choice.env)) {
    return Bad(index, ".env", "expected the name of a variable that only places this cache");
  }
  if (!IsCachePath(choice.path)) {
    return Bad(index, ".path",
               fmt::format("expected a relative path of A-Z, a-z, 0-9, ., _ and -, at most {} "
                           "bytes, without hidden or empty parts",
                           kChoicePathMax));
  }
  return CheckGlobs(index, choice);
}

absl::Status CheckDisjoint(size_t index, const api::CacheChoice& choice,
                           const std::vector<api::CacheChoice>& before) {
  for (const CacheKind& kind : AllKinds()) {
    if (Overlap(kind.path, choice.path)) {
      return Bad(index, ".path", fmt::format("overlaps the preset {}; choose another", kind.name));
    }
    if (std::any_of(kind.env.begin(), kind.env.end(),
                    [&choice](const EnvRow& row) { return row.name == choice.env; })) {
      return Bad(index, ".env", fmt::format("belongs to the preset {}", kind.name));
    }
  }
  for (const api::CacheChoice& other : before) {
    if (other.name == choice.name || other.env == choice.env || Overlap(other.path, choice.path)) {
      return Bad(index, "", fmt::format("shares name, env or path with the cache {}", other.name));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTogether(const std::vector<api::CacheChoice>& choices) {
  size_t bytes = 0;
  for (const api::CacheChoice& choice : choices) {
    bytes += kBytesPerCache + choice.name.size() + choice.env.size() + choice.path.size();
    for (const std::string& glob : choice.include) {
      bytes += kBytesPerGlob + glob.size();
    }
  }
  return bytes <= kTogetherMax
             ? absl::OkStatus()
             : absl::InvalidArgumentError(
                   fmt::format("spec.caches: {} bytes, as a node is told of them, are over the "
                               "limit of {}; fewer and wider patterns say the same",
                               bytes, kTogetherMax));
}

}  // namespace

absl::StatusOr<CacheTable> CacheTable::Make(const std::vector<api::CacheChoice>& choices) {
  if (choices.empty()) {
    return AllPresets();
  }
  if (choices.size() > api::json::kCachesMax) {
    return absl::InvalidArgumentError(
        fmt::format("spec.caches: more than {} entries", api::json::kCachesMax));
  }
  CW_RETURN_IF_ERROR(CheckTogether(choices));
  CacheTable table;
  for (size_t i = 0; i < choices.size(); ++i) {
    api::CacheChoice choice = choices[i];
    if (choice.env.empty()) {
      const CacheKind* kind = FindKind(choice.name);
      if (kind == nullptr) {
        return Bad(i, ".name",
                   fmt::format("no such preset; known are {}. A cache of your own needs env",
                               fmt::join(PresetNames(), ", ")));
      }
      if (!choice.path.empty() || !choice.include.empty()) {
        return Bad(i, "", "path and include belong to a cache of your own, which needs env");
      }
      if (std::find(table.kinds_.begin(), table.kinds_.end(), kind) == table.kinds_.end()) {
        table.kinds_.push_back(kind);
      }
      continue;
    }
    if (choice.path.empty()) {
      choice.path = choice.name;
    }
    CW_RETURN_IF_ERROR(CheckUserCache(i, choice));
    CW_RETURN_IF_ERROR(CheckDisjoint(i, choice, table.user_));
    table.user_.push_back(std::move(choice));
  }
  return table;
}

}  // namespace cachewarm::caches

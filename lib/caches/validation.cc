// SPDX-License-Identifier: Apache-2.0
// Validates spec.caches. The CRD checks the form of each field; names of presets, and clashes
// between entries, are checked here, so that a new preset needs no new CRD
// (docs/design/0021-one-row-per-cache-kind.md).
#include <algorithm>

#include "fmt/format.h"
#include "lib/api/json/limits.h"
#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"
#include "lib/caches/kind.h"

namespace cachewarm::caches {
namespace {

constexpr size_t kNameMax = 40;
constexpr size_t kEnvMax = 128;
constexpr size_t kCachePathMax = 128;
// Limits the entries so that a NodeCache fits into the 1.5 MiB that etcd accepts: a NodeCache holds
// the entries of 64 warmups, their bundles and the status of the agent.
constexpr size_t kEncodedBytesMax = 5U << 10U;
constexpr size_t kBytesPerGlob = 3;     // quotes and comma
constexpr size_t kBytesPerCache = 150;  // for field names and the API server's managedFields

absl::Status InvalidField(size_t index, std::string_view field, std::string_view problem) {
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

// Accepts components of [A-Za-z0-9._-] that do not begin with a dot.
bool IsCachePath(std::string_view path) {
  if (path.empty() || path.size() > kCachePathMax) {
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

// True if the paths are equal or one is a parent directory of the other.
bool Overlap(std::string_view a, std::string_view b) {
  const std::string_view shorter = a.size() < b.size() ? a : b;
  const std::string_view longer = a.size() < b.size() ? b : a;
  return longer.starts_with(shorter) &&
         (longer.size() == shorter.size() || longer[shorter.size()] == '/');
}

// True for variables that affect more than the directory of one cache: a pod would break if they
// pointed below the mount.
bool IsReserved(std::string_view env) {
  static constexpr std::string_view kReserved[] = {
      "HOME", "PATH", "PYTHONPATH", "USER", "LD_PRELOAD", "LD_LIBRARY_PATH", "PWD", "SHELL"};
  return std::find(std::begin(kReserved), std::end(kReserved), env) != std::end(kReserved);
}

// Accepts printable ASCII characters that JSON encodes as one byte each. Rejects quotation mark and
// backslash, which need two bytes, and <, > and &, which need six in Go's encoder.
bool IsGlob(std::string_view text) {
  return !text.empty() && text.size() <= api::json::kGlobBytes && text.front() != '/' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return c >= ' ' && c <= '~' &&
                  std::string_view("\"&<>\\").find(c) == std::string_view::npos;
         });
}

absl::Status CheckGlobs(size_t index, const api::CacheChoice& entry) {
  if (entry.include.size() > api::json::kIncludesMax) {
    return InvalidField(index, ".include",
                        fmt::format("at most {} patterns are allowed", api::json::kIncludesMax));
  }
  for (const std::string& glob : entry.include) {
    if (!IsGlob(glob)) {
      return InvalidField(
          index, ".include",
          fmt::format("each pattern must be relative to path and have 1 to {} characters: "
                      "printable ASCII except \" & < > and \\; use ? to match any other character",
                      api::json::kGlobBytes));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCustomCache(size_t index, const api::CacheChoice& entry) {
  if (!IsName(entry.name)) {
    return InvalidField(index, ".name",
                        fmt::format("expected 1 to {} characters of a-z, 0-9 and -", kNameMax));
  }
  if (FindKind(entry.name) != nullptr) {
    return InvalidField(
        index, ".name",
        fmt::format("\"{}\" is a cache kind that cachewarm knows; remove env, path and include, or "
                    "use another name",
                    entry.name));
  }
  if (!IsEnvName(entry.env) || IsReserved(entry.env)) {
    return InvalidField(
        index, ".env",
        "expected a variable that sets only the directory of this cache (not HOME, PATH, "
        "LD_PRELOAD or similar)");
  }
  if (!IsCachePath(entry.path)) {
    return InvalidField(
        index, ".path",
        fmt::format("expected a relative path of A-Z, a-z, 0-9, ., _ and -, at most {} "
                    "bytes; no component may be empty or begin with a dot",
                    kCachePathMax));
  }
  return CheckGlobs(index, entry);
}

absl::Status CheckDisjoint(size_t index, const api::CacheChoice& entry,
                           const std::vector<api::CacheChoice>& before) {
  for (const CacheKind& kind : AllKinds()) {
    if (Overlap(kind.path, entry.path)) {
      return InvalidField(
          index, ".path",
          fmt::format("overlaps the directory of the preset {}; use another path", kind.name));
    }
    if (std::any_of(kind.env.begin(), kind.env.end(),
                    [&entry](const EnvRow& row) { return row.name == entry.env; })) {
      return InvalidField(
          index, ".env",
          fmt::format("is set by the preset {}; select that preset, or use another variable",
                      kind.name));
    }
  }
  for (const api::CacheChoice& other : before) {
    if (other.name == entry.name || other.env == entry.env || Overlap(other.path, entry.path)) {
      return InvalidField(
          index, "",
          fmt::format("has the name or env of the cache {}, or overlaps its path; give each "
                      "cache a name, env and path of its own",
                      other.name));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEncodedSize(const std::vector<api::CacheChoice>& entries) {
  size_t bytes = 0;
  for (const api::CacheChoice& entry : entries) {
    bytes += kBytesPerCache + entry.name.size() + entry.env.size() + entry.path.size();
    for (const std::string& glob : entry.include) {
      bytes += kBytesPerGlob + glob.size();
    }
  }
  return bytes <= kEncodedBytesMax
             ? absl::OkStatus()
             : absl::InvalidArgumentError(fmt::format(
                   "spec.caches: {} bytes in a NodeCache exceed the limit of {}; use fewer or "
                   "shorter patterns",
                   bytes, kEncodedBytesMax));
}

}  // namespace

absl::StatusOr<CacheTable> CacheTable::Make(const std::vector<api::CacheChoice>& entries) {
  if (entries.empty()) {
    return DefaultPresets();
  }
  if (entries.size() > api::json::kCachesMax) {
    return absl::InvalidArgumentError(
        fmt::format("spec.caches: more than {} entries", api::json::kCachesMax));
  }
  CW_RETURN_IF_ERROR(CheckEncodedSize(entries));
  CacheTable table;
  for (size_t i = 0; i < entries.size(); ++i) {
    api::CacheChoice entry = entries[i];
    if (entry.env.empty()) {
      if (const absl::Status known = CheckPresetName(entry.name); !known.ok()) {
        return InvalidField(
            i, ".name",
            fmt::format("{}; remove it, or define it with env, path and include", Message(known)));
      }
      if (!entry.path.empty() || !entry.include.empty()) {
        return InvalidField(i, "",
                            "path and include require env; to select a preset, set only name");
      }
      const CacheKind* kind = FindKind(entry.name);
      if (std::find(table.kinds_.begin(), table.kinds_.end(), kind) == table.kinds_.end()) {
        table.kinds_.push_back(kind);
      }
      continue;
    }
    if (entry.path.empty()) {
      entry.path = entry.name;
    }
    CW_RETURN_IF_ERROR(CheckCustomCache(i, entry));
    CW_RETURN_IF_ERROR(CheckDisjoint(i, entry, table.custom_));
    table.custom_.push_back(std::move(entry));
  }
  return table;
}

}  // namespace cachewarm::caches

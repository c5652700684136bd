// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/restore_rules.h"

#include <algorithm>
#include <utility>

#include "lib/fs/file.h"

namespace cachewarm::capture {
namespace {

constexpr int64_t kResultBytesMax = int64_t{64} << 20;

Digest DigestOfResult(const fs::Dir& tree, const std::string& path) {
  const absl::StatusOr<std::string> bytes = fs::ReadFile(tree, path, kResultBytesMax);
  return bytes.ok() ? DigestOf(*bytes) : Digest();
}

bool HasPath(const std::vector<TreeFile>& files, const std::string& path) {
  const auto found =
      std::lower_bound(files.begin(), files.end(), path,
                       [](const TreeFile& file, const auto& wanted) { return file.path < wanted; });
  return found != files.end() && found->path == path;
}

}  // namespace

AutotuneResults ReadAutotuneResults(const fs::Dir& tree, const std::vector<bundle::Entry>& entries,
                                    const caches::CacheTable& table) {
  AutotuneResults results;
  for (const bundle::Entry& entry : entries) {
    if (table.Classify(entry.path).autotune_set.empty()) {
      continue;
    }
    if (const auto exists = tree.Exists(entry.path); exists.ok() && *exists) {
      results[entry.path] = DigestOfResult(tree, entry.path);
    }
  }
  return results;
}

AutotuneResults AutotuneResultsOf(const std::vector<bundle::Entry>& entries,
                                  const caches::CacheTable& table,
                                  const std::vector<bool>& excluded) {
  AutotuneResults results;
  for (size_t i = 0; i < entries.size(); ++i) {
    const bool is_excluded = !excluded.empty() && excluded[i];
    if (!is_excluded && !table.Classify(entries[i].path).autotune_set.empty()) {
      results[entries[i].path] = entries[i].digest;
    }
  }
  return results;
}

std::vector<bool> FindRivals(const std::vector<bundle::Entry>& entries,
                             const caches::CacheTable& table, const AutotuneResults& present) {
  if (present.empty()) {
    return {};
  }
  std::set<std::string, std::less<>> sets;
  for (const bundle::Entry& entry : entries) {
    const auto found = present.find(entry.path);
    if (found != present.end() && (found->second.empty() || found->second != entry.digest)) {
      sets.insert(table.Classify(entry.path).autotune_set);
    }
  }
  sets.erase("");
  std::vector<bool> rivals;
  if (sets.empty()) {
    return rivals;
  }
  rivals.reserve(entries.size());
  for (const bundle::Entry& entry : entries) {
    rivals.push_back(sets.contains(table.Classify(entry.path).autotune_set));
  }
  return rivals;
}

std::vector<bool> FindUnwanted(const std::vector<bundle::Entry>& entries,
                               const caches::CacheTable& table, const AutotuneResults& present) {
  std::vector<bool> unwanted = FindRivals(entries, table, present);
  for (size_t i = 0; i < entries.size(); ++i) {
    if (table.Classify(entries[i].path).skip == caches::Skip::kLock) {
      unwanted.resize(entries.size());
      unwanted[i] = true;
    }
  }
  return unwanted;
}

std::function<bool(const bundle::Entry&)> WantedAmong(const std::vector<bundle::Entry>& entries,
                                                      std::vector<bool> unwanted) {
  if (unwanted.empty()) {
    return {};
  }
  return [&entries, unwanted = std::move(unwanted)](const bundle::Entry& entry) {
    return !unwanted[static_cast<size_t>(&entry - entries.data())];
  };
}

std::set<std::string, std::less<>> SetsToLeaveOut(const bundle::Config& stored,
                                                  const std::vector<TreeFile>& files,
                                                  const fs::Dir& tree) {
  const caches::CacheTable& table = caches::CacheTable::AllPresets();
  const std::vector<bool> rivals =
      FindRivals(stored.entries, table, ReadAutotuneResults(tree, stored.entries, table));
  std::set<std::string, std::less<>> sets;
  for (size_t i = 0; i < rivals.size(); ++i) {
    if (rivals[i] && !HasPath(files, stored.entries[i].path)) {
      sets.insert(table.Classify(stored.entries[i].path).autotune_set);
    }
  }
  return sets;
}

}  // namespace cachewarm::capture

// SPDX-License-Identifier: Apache-2.0
#include "cli/megacache/placement.h"

#include <sys/types.h>

#include <algorithm>
#include <map>
#include <utility>

#include "cli/run/directory.h"
#include "cli/run/torch_directory.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"
#include "lib/fs/file.h"
#include "lib/megacache/layout.h"

namespace cachewarm::cli {
namespace {

constexpr int64_t kFileBytesMax = 8LL << 30;

bool IsAutotuneResult(const ImportedFile& file) {
  return !caches::CacheTable::AllPresets().Classify(file.path).autotune_set.empty();
}

absl::StatusOr<bool> HasBytes(const fs::Dir& dir, const ImportedFile& file) {
  const auto found = dir.Stat(file.path);
  if (absl::IsNotFound(found.status())) {
    return false;
  }
  CW_RETURN_IF_ERROR(found.status());
  if (!file.may_replace) {
    return true;
  }
  if (found->bytes != file.bytes) {
    return false;
  }
  CW_ASSIGN_OR_RETURN(const std::string bytes, fs::ReadFile(dir, file.path, file.bytes));
  return bytes == file.entry->content;
}

// True if the tree has an autotune result that differs from that of the artifact. Then no result of
// the artifact is written (docs/design/0028-autotune-results-of-one-generation.md).
bool HasOtherResults(const ImportJob& job) {
  for (const ImportedFile& file : job.files) {
    if (file.entry != nullptr && IsAutotuneResult(file)) {
      const auto bytes = fs::ReadFile(job.tree, file.path, kFileBytesMax);
      if (!absl::IsNotFound(bytes.status()) && (!bytes.ok() || *bytes != file.entry->content)) {
        return true;
      }
    }
  }
  return false;
}

absl::Status WriteOne(const ImportJob& job, const ImportedFile& file) {
  const size_t slash = file.path.rfind('/');
  CW_RETURN_IF_ERROR(job.tree.MakeDirs(file.path.substr(0, slash), kCacheDirectoryMode));
  const auto mode = mode_t{caches::CacheTable::AllPresets().Classify(file.path).mode()};
  if (file.entry != nullptr) {
    return fs::WriteFileAtomic(job.tree, file.path, file.entry->content, mode,
                               fs::Durable::kOnceAllSynced);
  }
  const std::string inner = file.path.substr(std::string_view(kTorchKind).size() + 1);
  CW_ASSIGN_OR_RETURN(const std::string bytes, fs::ReadFile(*job.objects, inner, kFileBytesMax));
  return fs::WriteFileAtomic(job.tree, file.path, bytes, mode, fs::Durable::kOnceAllSynced);
}

}  // namespace

absl::StatusOr<std::vector<ImportedFile>> PlanImport(std::span<const megacache::Entry> entries,
                                                     const ObjectFiles& objects) {
  std::vector<ImportedFile> files;
  for (const ObjectFiles::File& file : objects.files) {
    files.push_back({.path = fmt::format("{}/{}", kTorchKind, file.path), .bytes = file.bytes});
  }
  std::map<std::string, const megacache::Entry*> placed;
  for (const megacache::Entry& entry : entries) {
    CW_ASSIGN_OR_RETURN(std::string path, megacache::PathOf(entry));
    placed[std::move(path)] = &entry;
  }
  for (const auto& [path, entry] : placed) {
    const auto name = megacache::NameOf(path);
    files.push_back({.path = fmt::format("{}/{}", kTorchKind, path),
                     .entry = entry,
                     .may_replace = !name.has_value() || !name->named_by_content,
                     .bytes = static_cast<int64_t>(entry->content.size())});
  }
  return files;
}

absl::StatusOr<ImportCounts> WriteImport(const ImportJob& job, const std::stop_token& stop) {
  int64_t total = 0;
  for (const ImportedFile& file : job.files) {
    total += file.bytes;
  }
  const bool keeps_results = HasOtherResults(job);
  ImportCounts counts;
  int64_t done = 0;
  for (const ImportedFile& file : job.files) {
    if (stop.stop_requested()) {
      return absl::CancelledError("the import was stopped");
    }
    CW_ASSIGN_OR_RETURN(const bool present, HasBytes(job.tree, file));
    if (present || (keeps_results && IsAutotuneResult(file))) {
      ++counts.present;
    } else {
      CW_RETURN_IF_ERROR(WriteOne(job, file));
      ++counts.files;
      counts.bytes += file.bytes;
    }
    done += file.bytes;
    job.on_progress(done, total);
  }
  CW_RETURN_IF_ERROR(job.tree.SyncFileSystem());
  return counts;
}

}  // namespace cachewarm::cli

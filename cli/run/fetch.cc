// SPDX-License-Identifier: Apache-2.0
#include "cli/run/fetch.h"

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/run/directory.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/unpacker.h"
#include "lib/caches/cache_table.h"
#include "lib/caches/relocate.h"
#include "lib/capture/restore_rules.h"
#include "lib/fs/file.h"
#include "lib/fs/lock.h"
#include "lib/fs/tree.h"

namespace cachewarm::cli {
namespace {

constexpr char kStaging[] = ".cachewarm/fetch";
constexpr char kFetchLock[] = ".cachewarm/fetch.lock";
// Assumed block size of the file system; a file occupies whole blocks.
constexpr int64_t kBlockBytes = 4096;

// The files of a bundle that a directory lacks.
struct Missing {
  bundle::PresentEntries present;  // also the files that stay out
  std::vector<bool> unwanted;      // the files that stay out; empty: none
  int64_t rivals = 0;  // autotune results that stay out: the directory has those of another tuning
  int64_t files = 0;
  int64_t bytes = 0;
  int64_t disk_bytes = 0;
};

absl::StatusOr<Missing> FindMissing(const bundle::Bundle& found, const fs::Dir& dir) {
  Missing missing;
  const std::vector<bundle::Entry>& entries = found.config.entries;
  const caches::CacheTable& table = caches::CacheTable::AllPresets();
  missing.unwanted =
      capture::FindUnwanted(entries, table, capture::ReadAutotuneResults(dir, entries, table));
  for (size_t i = 0; i < entries.size(); ++i) {
    const bundle::Entry& entry = entries[i];
    if (entry.path.starts_with(fmt::format("{}/", kOwnFiles))) {
      return absl::InvalidArgumentError(fmt::format(
          "bundle {} has the file {}, whose directory is reserved for cachewarm; publish another "
          "bundle",
          found.digest.Short(), entry.path));
    }
    CW_ASSIGN_OR_RETURN(const bool exists, dir.Exists(entry.path));
    const bool is_unwanted = !missing.unwanted.empty() && missing.unwanted[i];
    missing.present.push_back(exists || is_unwanted);
    missing.rivals += is_unwanted && table.Classify(entry.path).carried() ? 1 : 0;
    if (!exists && !is_unwanted) {
      ++missing.files;
      missing.bytes += entry.bytes;
      missing.disk_bytes += (entry.bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    }
  }
  return missing;
}

absl::Status CheckSize(const bundle::Bundle& found, const FetchLimits& limits) {
  const int64_t bytes = bundle::PackedBytes(found.manifest);
  if (limits.packed_bytes_max > 0 && bytes > limits.packed_bytes_max) {
    return absl::OutOfRangeError(
        fmt::format("bundle {} has {} bytes, more than the limit of {} (--max-bytes)",
                    found.digest.Short(), bytes, limits.packed_bytes_max));
  }
  return absl::OkStatus();
}

absl::Status CheckSpace(const fs::Dir& dir, int64_t needed_bytes, int64_t reserve_bytes) {
  CW_ASSIGN_OR_RETURN(const fs::Space space, fs::MeasureSpace(dir));
  if (needed_bytes > space.free_bytes - reserve_bytes) {
    return absl::ResourceExhaustedError(fmt::format(
        "{}: {} bytes needed, {} free, of which {} must stay free; delete files on this disk",
        dir.name(), needed_bytes, space.free_bytes, reserve_bytes));
  }
  return absl::OkStatus();
}

absl::Status Download(const FetchJob& job, const bundle::Bundle& found, Missing& missing,
                      std::stop_token stop) {
  CW_RETURN_IF_ERROR(job.dir.MakeDir(kStaging, kCacheDirectoryMode));
  CW_ASSIGN_OR_RETURN(const fs::Dir staging, job.dir.OpenDir(kStaging));
  const auto mode_of = [](const bundle::Entry& entry) {
    return mode_t{caches::CacheTable::AllPresets().Classify(entry.path).mode()};
  };
  return bundle::Extract(job.source.store.place(),
                         {.bundle = found,
                          .staging = staging,
                          .options = {.limits = job.limits.archive,
                                      .mode_of = mode_of,
                                      .directory_mode = kCacheDirectoryMode,
                                      .present = std::move(missing.present),
                                      .wanted = capture::WantedAmong(found.config.entries,
                                                                     std::move(missing.unwanted)),
                                      .check_contents = false},
                          .on_progress = job.on_progress},
                         std::move(stop));
}

// Rewrites the downloaded files that name others by absolute paths, because the bundle may have
// been published from another directory. A file that cannot be rewritten stays as it is: the engine
// then compiles again.
absl::Status RelocateDownloaded(const fs::Dir& dir, const bundle::Bundle& found,
                                const bundle::PresentEntries& present) {
  const caches::CacheTable& table = caches::CacheTable::AllPresets();
  for (size_t i = 0; i < found.config.entries.size(); ++i) {
    const bundle::Entry& entry = found.config.entries[i];
    const caches::Placement placement = table.Classify(entry.path);
    if (present[i] || !placement.own_paths || entry.bytes > caches::kOwnPathsBytesMax) {
      continue;
    }
    const std::string staged = fmt::format("{}/{}", kStaging, entry.path);
    CW_ASSIGN_OR_RETURN(const std::string text, fs::ReadFile(dir, staged, entry.bytes));
    const std::string target = fmt::format("{}/{}", dir.name(), entry.path);
    if (const auto relocated =
            caches::Relocate(text, placement, entry.path, target.substr(0, target.rfind('/')))) {
      CW_RETURN_IF_ERROR(fs::WriteFileAtomic(dir, staged, *relocated, mode_t{placement.mode()}));
    }
  }
  return absl::OkStatus();
}

// Moves the files from the staging directory to their places in `dir`. Moves a directory that does
// not exist there with one rename, and all other files one by one. Existing files stay.
absl::Status MoveIntoPlace(const fs::Dir& dir) {
  absl::Status moved;
  CW_RETURN_IF_ERROR(fs::Walk(dir, kStaging, {}, [&](const fs::WalkEntry& entry) {
    const auto exists = dir.Exists(entry.path);
    moved = exists.status();
    if (exists.ok() && !*exists) {
      moved = dir.Rename(fmt::format("{}/{}", kStaging, entry.path), entry.path);
    }
    if (!moved.ok()) {
      return fs::WalkNext::kStop;
    }
    return *exists ? fs::WalkNext::kContinue : fs::WalkNext::kSkipDirectory;
  }));
  return moved;
}

absl::Status Add(const FetchJob& job, const bundle::Bundle& found, Missing& missing,
                 const std::stop_token& stop) {
  const bundle::PresentEntries present = missing.present;
  CW_RETURN_IF_ERROR(Download(job, found, missing, stop));
  CW_RETURN_IF_ERROR(RelocateDownloaded(job.dir, found, present));
  // After a stop the caller may have started the command already, so do not add files any more.
  return stop.stop_requested() ? absl::CancelledError("the fetch was stopped")
                               : MoveIntoPlace(job.dir);
}

absl::StatusOr<Missing> Fetch(const FetchJob& job, const bundle::Bundle& found,
                              const std::stop_token& stop) {
  const FetchLimits& limits = job.limits;
  CW_RETURN_IF_ERROR(CheckSize(found, limits));
  CW_RETURN_IF_ERROR(bundle::CheckBundle(found.manifest, found.config, limits.archive));
  CW_RETURN_IF_ERROR(job.dir.MakeDirs(kOwnFiles, kCacheDirectoryMode));
  CW_ASSIGN_OR_RETURN(const fs::Fd lock,
                      fs::Lock(job.dir, kFetchLock,
                               {.clock = job.clock, .timeout = limits.lock_wait, .stop = stop}));
  CW_RETURN_IF_ERROR(fs::RemoveTree(job.dir, kStaging));  // remains of a killed process
  CW_ASSIGN_OR_RETURN(Missing missing, FindMissing(found, job.dir));
  if (missing.files == 0) {
    return missing;
  }
  CW_RETURN_IF_ERROR(CheckSpace(job.dir, missing.disk_bytes, limits.free_bytes_min));
  absl::Status added = Add(job, found, missing, stop);
  fs::RemoveTree(job.dir, kStaging).IgnoreError();
  CW_RETURN_IF_ERROR(added);
  return missing;
}

}  // namespace

FetchReport FetchMissing(const FetchJob& job, std::stop_token stop) {
  FetchReport report;
  const auto found = ReadUsableBundle(job.source, stop);
  if (!found.ok()) {
    report.status = found.status();
    return report;
  }
  report.bundle = found->digest;
  const auto missing = Fetch(job, *found, stop);
  report.status = missing.status();
  if (missing.ok()) {
    report.files = missing->files;
    report.bytes = missing->bytes;
    report.rivals = missing->rivals;
  }
  return report;
}

}  // namespace cachewarm::cli

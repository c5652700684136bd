// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/scrubbing/scrub_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "lib/base/status.h"
#include "lib/bundle/transfer.h"
#include "lib/capture/stable_file.h"
#include "lib/capture/whole_file.h"
#include "lib/fs/file.h"

namespace cachewarm::agent {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
// A file that was written within this time may still be open for writing.
constexpr Duration kQuiet(60'000);
// Number of files that are read in one OwnReads scope. If the kernel loses the event of such a
// read, the scope instead hides the next read of the file by a pod until the scope ends. A small
// scope ends soon, so this happens rarely.
constexpr int kReadsPerScope = 64;

enum class FileObservation { kIntact, kModifiedByEngine, kRemoved, kInFlight, kDamaged };

// Returns true if the stat of a file matches `known`, an EntryRecord or a FileStamp.
template <class Stamped>
bool HasStamp(const fs::FileStat& stat, const Stamped& known) {
  return stat.inode == known.inode && stat.bytes == known.bytes &&
         stat.mtime_ns == known.mtime_ns && stat.ctime_ns == known.ctime_ns;
}

class TreeScrub {
 public:
  TreeScrub(const ScrubJob& job, std::stop_token stop)
      : job_(job),
        stop_(std::move(stop)),
        buffer_(std::make_unique<char[]>(kBufferBytes)),
        own_reads_(job.watcher.BeginOwnReads(job.generation)) {}

  absl::StatusOr<Scrubbed> Run() {
    CW_ASSIGN_OR_RETURN(record_, ReadGenerationRecord(job_.root, job_.generation));
    CW_ASSIGN_OR_RETURN(entries_, ReadEntryRecords(job_.root, job_.generation));
    LoadRecord();
    scrubbed_.files = static_cast<int64_t>(entries_.size());
    const absl::Status checked = CheckAll();
    if (!checked.ok() && !absl::IsCancelled(checked)) {
      return checked;
    }
    if (scrubbed_.damage.has_value()) {
      if (IsIndexInconsistent(*scrubbed_.damage, job_.damaged)) {
        scrubbed_.inconsistent_bundle = FindInconsistentBundle();
      }
      return scrubbed_;
    }
    CW_RETURN_IF_ERROR(Write(checked.ok()));
    CW_RETURN_IF_ERROR(checked);
    return scrubbed_;
  }

 private:
  void LoadRecord() {
    absl::StatusOr<ScrubRecord> before = ReadScrubRecord(job_.root, job_.generation);
    if (!before.ok()) {
      return;
    }
    before_ = before->at;
    for (FileStamp& file : before->modified_by_engine) {
      std::string path = file.path;
      modified_.emplace(std::move(path), std::move(file));
    }
    if (before->entries == static_cast<int64_t>(entries_.size())) {
      checked_ = std::min(before->checked, before->entries);
    }
  }

  absl::Status CheckAll() {
    for (size_t at = 0; at < entries_.size(); ++at) {
      if (stop_.stop_requested()) {
        return absl::CancelledError("scrub stopped");
      }
      CW_RETURN_IF_ERROR(CheckEntry(at));
      if (scrubbed_.damage.has_value()) {
        return absl::OkStatus();
      }
      checked_ = std::max(checked_, static_cast<int64_t>(at) + 1);
    }
    CheckUnits();
    return absl::OkStatus();
  }

  absl::Status CheckEntry(size_t at) {
    EntryRecord& entry = entries_[at];
    const caches::Placement placement = job_.table.Classify(entry.path);
    CW_ASSIGN_OR_RETURN(const FileObservation observed, Observe(at, placement));
    scrubbed_.modified_by_engine += observed == FileObservation::kModifiedByEngine ? 1 : 0;
    scrubbed_.gone += observed == FileObservation::kRemoved ? 1 : 0;
    scrubbed_.in_flight += observed == FileObservation::kInFlight && !placement.writable ? 1 : 0;
    if (placement.directory_is_write && !placement.unit.empty()) {
      (observed == FileObservation::kRemoved ? gone_units_ : there_units_)
          .emplace(placement.unit, at);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<FileObservation> Observe(size_t at, const caches::Placement& placement) {
    const EntryRecord& entry = entries_[at];
    const absl::StatusOr<fs::FileStat> stat = job_.root.Stat(PathOf(entry));
    if (!stat.ok()) {
      return ObserveError(entry, stat.status());
    }
    if (stat->type != fs::FileType::kFile) {
      return FileObservation::kModifiedByEngine;
    }
    if (const auto known = modified_.find(entry.path); known != modified_.end()) {
      if (HasStamp(*stat, known->second)) {
        return FileObservation::kModifiedByEngine;
      }
    } else if (static_cast<int64_t>(at) < checked_ && HasStamp(*stat, entry)) {
      return FileObservation::kIntact;
    }
    return Read(entries_[at], placement);
  }

  // Classifies an error of opening or reading a file. Either an engine removed the file or replaced
  // it with a link or directory, or the disk cannot read it.
  absl::StatusOr<FileObservation> ObserveError(const EntryRecord& entry,
                                               const absl::Status& status) {
    if (absl::IsNotFound(status)) {
      return FileObservation::kRemoved;
    }
    if (absl::IsInvalidArgument(status) || absl::IsPermissionDenied(status)) {
      return FileObservation::kModifiedByEngine;
    }
    if (absl::IsCancelled(status) || absl::IsResourceExhausted(status)) {
      return status;
    }
    Damage(entry, 0, fmt::format("cannot be read: {}", Message(status)));
    return FileObservation::kDamaged;
  }

  absl::StatusOr<FileObservation> Read(EntryRecord& entry, const caches::Placement& placement) {
    ExpectOwnRead(entry.path);
    const absl::StatusOr<fs::Fd> file = job_.root.OpenFile(PathOf(entry));
    if (!file.ok()) {
      return ObserveError(entry, file.status());
    }
    const absl::StatusOr<fs::FileStat> stat = fs::StatFile(*file);
    if (!stat.ok()) {
      return ObserveError(entry, stat.status());
    }
    // A file of another size is not read: it may be a sparse one of many terabytes.
    const bool has_size = stat->bytes == entry.bytes;
    const absl::StatusOr<Digest> digest = has_size ? Hash(*file, entry.bytes) : Digest();
    if (!digest.ok()) {
      return ObserveError(entry, digest.status());
    }
    FileChange change{.right = has_size && *digest == entry.digest,
                      .same_file = stat->inode == entry.inode && stat->mode == placement.mode(),
                      .written = stat->bytes != entry.bytes || stat->mtime_ns != entry.mtime_ns,
                      .writable = placement.writable};
    if (!change.right) {
      const absl::Status whole = capture::CheckWholeFile(*file, placement, entry.path, stat->bytes);
      change.truncated = absl::IsDataLoss(whole);
      if (!whole.ok() && !change.truncated) {
        return ObserveError(entry, whole);
      }
    }
    CW_ASSIGN_OR_RETURN(const fs::FileStat after, fs::StatFile(*file));
    const bool is_untouched = change.same_file && !change.written;
    if (!capture::IsUnchanged(*stat, after) ||
        (!change.right && !is_untouched && !IsQuiet(*file, *stat, entry.path))) {
      return FileObservation::kInFlight;
    }
    return Evaluate(entry, change, *stat);
  }

  FileObservation Evaluate(EntryRecord& entry, const FileChange& change, const fs::FileStat& stat) {
    modified_.erase(entry.path);
    switch (EvaluateFile(change)) {
      case FileState::kIntact:
        if (!HasStamp(stat, entry)) {
          entry.inode = stat.inode;
          entry.mtime_ns = stat.mtime_ns;
          entry.ctime_ns = stat.ctime_ns;
          has_new_stamps_ = true;
        }
        return FileObservation::kIntact;
      case FileState::kModifiedByEngine:
        modified_[entry.path] = {.path = entry.path,
                                 .bytes = stat.bytes,
                                 .inode = stat.inode,
                                 .mtime_ns = stat.mtime_ns,
                                 .ctime_ns = stat.ctime_ns};
        return FileObservation::kModifiedByEngine;
      case FileState::kDamaged:
        break;
    }
    Damage(entry, stat.inode, std::string(DescribeDamage(change)));
    scrubbed_.damage->untouched = change.same_file && !change.written;
    return FileObservation::kDamaged;
  }

  absl::StatusOr<Digest> Hash(const fs::Fd& file, int64_t bytes) {
    Sha256 hash;
    for (int64_t offset = 0; offset < bytes;) {
      if (stop_.stop_requested()) {
        return absl::CancelledError("scrub stopped");
      }
      CW_RETURN_IF_ERROR(job_.pace(std::min<int64_t>(kBufferBytes, bytes - offset)));
      CW_ASSIGN_OR_RETURN(const size_t got, fs::ReadAt(file, offset, buffer_.get(), kBufferBytes));
      if (got == 0) {
        break;
      }
      hash.Update({buffer_.get(), got});
      offset += static_cast<int64_t>(got);
      scrubbed_.read_bytes += static_cast<int64_t>(got);
    }
    ++scrubbed_.read_files;
    return hash.Finish();
  }

  // Returns true if no process is writing the file. CheckNoWriter() cannot prove that on every file
  // system, so the last write must also be a minute old.
  bool IsQuiet(const fs::Fd& file, const fs::FileStat& stat, const std::string& path) const {
    const WallTime written(std::chrono::duration_cast<Duration>(
        std::chrono::nanoseconds(std::max(stat.mtime_ns, stat.ctime_ns))));
    const Duration age = job_.clock.Now() - written;
    // A time in the future means that the clock was wrong; treat the file as old.
    const bool is_old = age > kQuiet || age < -kQuiet;
    return is_old && !absl::IsAborted(capture::CheckNoWriter(file, path));
  }

  // Finds incomplete units: directories that an engine renames into place as a whole, and that now
  // lack a file. The engine crashes on such a directory.
  void CheckUnits() {
    for (const auto& [unit, at] : gone_units_) {
      const auto there = there_units_.find(unit);
      const EntryRecord& entry = entries_[at];
      if (there == there_units_.end() || IsThere(entry) || !IsThere(entries_[there->second])) {
        continue;  // no damage: the whole directory is gone, or the file is back
      }
      Damage(entry, 0,
             fmt::format("was removed, but {}, which needs it, still exists",
                         entries_[there->second].path));
      return;
    }
  }

  bool IsThere(const EntryRecord& entry) const {
    const absl::StatusOr<bool> exists = job_.root.Exists(PathOf(entry));
    return exists.ok() && *exists;
  }

  void Damage(const EntryRecord& entry, uint64_t inode, std::string message) {
    scrubbed_.damage = DamagedTree{.at = job_.clock.Now(),
                                   .path = entry.path,
                                   .message = std::move(message),
                                   .digest = entry.digest,
                                   .inode = inode};
  }

  absl::Status Write(bool is_whole_pass) {
    if (has_new_stamps_) {
      CW_RETURN_IF_ERROR(WriteGenerationRecord(job_.root, record_, entries_));
    }
    ScrubRecord now{.at = is_whole_pass ? job_.clock.Now() : before_,
                    .entries = static_cast<int64_t>(entries_.size()),
                    .checked = checked_};
    for (auto& [path, file] : modified_) {
      now.modified_by_engine.push_back(file);
    }
    return WriteScrubRecord(job_.root, job_.generation, now);
  }

  // Returns the bundle that the damaged file was extracted from; empty if it cannot be found. If
  // several bundles contain the path, the file of the first is extracted.
  Digest FindInconsistentBundle() const {
    const DamagedTree& damage = *scrubbed_.damage;
    if (record_.digests.size() == 1) {
      return record_.digests.front();
    }
    const bundle::RepositoryRef place{
        .store = job_.store,
        .repository = fmt::format("{}/{}", record_.mount.ns, record_.mount.name)};
    for (const Digest& digest : record_.digests) {
      const absl::StatusOr<bundle::Bundle> bundle = bundle::ReadBundle(place, digest, stop_);
      if (!bundle.ok()) {
        return {};  // unknown for now: the next damaged tree of the bundle repeats the search
      }
      for (const bundle::Entry& entry : bundle->config.entries) {
        if (entry.path == damage.path && entry.digest == damage.digest) {
          return digest;
        }
      }
    }
    return {};
  }

  void ExpectOwnRead(const std::string& path) {
    if (++reads_in_scope_ > kReadsPerScope) {
      own_reads_ = job_.watcher.BeginOwnReads(job_.generation);
      reads_in_scope_ = 1;
    }
    own_reads_.Opening(path);
  }

  std::string PathOf(const EntryRecord& entry) const {
    return fmt::format("{}/{}", GenerationPath(job_.generation), entry.path);
  }

  const ScrubJob& job_;
  std::stop_token stop_;
  std::unique_ptr<char[]> buffer_;
  OwnReads own_reads_;
  int reads_in_scope_ = 0;
  GenerationRecord record_;
  std::vector<EntryRecord> entries_;
  bool has_new_stamps_ = false;
  WallTime before_{};
  int64_t checked_ = 0;
  std::map<std::string, FileStamp> modified_;
  // By unit (a directory that engines rename into place as a whole): the index in entries_ of one
  // file that is missing, and of one that exists.
  std::map<std::string, size_t> gone_units_;
  std::map<std::string, size_t> there_units_;
  Scrubbed scrubbed_;
};

}  // namespace

absl::StatusOr<Scrubbed> ScrubTree(const ScrubJob& job, std::stop_token stop) {
  return TreeScrub(job, std::move(stop)).Run();
}

}  // namespace cachewarm::agent

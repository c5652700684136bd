// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/durable.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <vector>

#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "lib/base/status.h"
#include "lib/fs/file.h"

namespace cachewarm::agent {
namespace {

constexpr mode_t kMarkMode = 0600;

// Returns the error of a failed sync, which no later sync may report again.
absl::Status LostWrite(const absl::Status& synced, std::string_view path) {
  if (synced.ok() || absl::IsCancelled(synced)) {
    return synced;
  }
  return absl::DataLossError(
      fmt::format("{}: the disk did not take this file: {}", path, Message(synced)));
}

// Returns true if an engine removed the name, or replaced it with something that is not a file.
bool IsChangedByEngine(const absl::Status& opened) {
  return absl::IsNotFound(opened) || absl::IsInvalidArgument(opened) ||
         absl::IsPermissionDenied(opened) || absl::IsFailedPrecondition(opened);
}

class TreeSync {
 public:
  TreeSync(const SyncJob& job, const std::stop_token& stop) : job_(job), stop_(stop) {}

  absl::Status Run() {
    CW_ASSIGN_OR_RETURN(const GenerationRecord record,
                        ReadGenerationRecord(job_.root, job_.generation));
    CW_ASSIGN_OR_RETURN(const std::vector<EntryRecord> entries,
                        ReadEntryRecords(job_.root, job_.generation));
    CW_ASSIGN_OR_RETURN(const fs::Dir tree, job_.root.OpenDir(GenerationPath(job_.generation)));
    for (const EntryRecord& entry : entries) {
      CW_RETURN_IF_ERROR(SyncEntry(tree, entry));
    }
    CW_RETURN_IF_ERROR(SyncDirectories(tree, entries));
    CW_RETURN_IF_ERROR(SyncRecords(record.mount));
    return SyncNames(record.mount);
  }

 private:
  absl::Status SyncEntry(const fs::Dir& tree, const EntryRecord& entry) const {
    if (job_.before_open) {
      CW_RETURN_IF_ERROR(job_.before_open(entry.path));
    }
    const absl::StatusOr<fs::Fd> file = tree.OpenFile(entry.path);
    if (!file.ok()) {
      return IsChangedByEngine(file.status()) ? absl::OkStatus() : file.status();
    }
    CW_ASSIGN_OR_RETURN(const fs::FileStat found, fs::StatFile(*file));
    if (found.inode != entry.inode) {
      return absl::OkStatus();
    }
    return LostWrite(fs::SyncFileInSteps(*file, found.bytes, stop_), entry.path);
  }

  absl::Status SyncDirectory(const fs::Dir& dir, const std::string& path) const {
    if (stop_.stop_requested()) {
      return absl::CancelledError("the sync of a tree was stopped");
    }
    const absl::StatusOr<fs::Dir> opened = dir.OpenDir(path);
    if (!opened.ok()) {
      return IsChangedByEngine(opened.status()) ? absl::OkStatus() : opened.status();
    }
    return LostWrite(opened->Sync(), path);
  }

  absl::Status SyncDirectories(const fs::Dir& tree, const std::vector<EntryRecord>& entries) const {
    std::set<std::string> directories;
    for (const EntryRecord& entry : entries) {
      std::string_view path = entry.path;
      for (size_t slash = path.rfind('/'); slash != std::string_view::npos && slash > 0;
           slash = path.rfind('/')) {
        path = path.substr(0, slash);
        if (!directories.emplace(path).second) {
          break;
        }
      }
    }
    for (const std::string& directory : directories) {
      CW_RETURN_IF_ERROR(SyncDirectory(tree, directory));
    }
    return LostWrite(tree.Sync(), GenerationPath(job_.generation));
  }

  absl::Status SyncRecords(const Mount& mount) const {
    for (const std::string& path : {EntriesRecordPath(job_.generation),
                                    GenerationRecordPath(job_.generation), LinkRecordPath(mount)}) {
      const absl::StatusOr<fs::Fd> file = job_.root.OpenFile(path);
      if (absl::IsNotFound(file.status())) {
        continue;  // the link of the mount was never flipped
      }
      CW_RETURN_IF_ERROR(file.status());
      CW_RETURN_IF_ERROR(LostWrite(fs::SyncFile(*file), path));
    }
    return absl::OkStatus();
  }

  // Syncs the directories with the names of the records, of the tree and of its link.
  absl::Status SyncNames(const Mount& mount) const {
    for (const std::string& path :
         {std::string(kGenerationRecords), std::string(kLinkRecords), std::string(kGenerations),
          MountParent(mount), fmt::format("{}/{}", mount.ns, mount.name), mount.ns}) {
      CW_RETURN_IF_ERROR(SyncDirectory(job_.root, path));
    }
    return LostWrite(job_.root.Sync(), "the root directory");
  }

  const SyncJob& job_;
  const std::stop_token& stop_;
};

}  // namespace

bool IsDurable(const fs::Dir& root, const std::string& generation) {
  return root.Exists(DurableMarkPath(generation)).value_or(false);
}

absl::Status RemoveDurableMark(const fs::Dir& root, const std::string& generation) {
  CW_RETURN_IF_ERROR(root.Remove(DurableMarkPath(generation)));
  // Also without a mark: a killed process may have removed it and not synced.
  return root.Sync(kGenerationRecords);
}

absl::Status MakeDurable(const SyncJob& job, const std::stop_token& stop) {
  CW_RETURN_IF_ERROR(TreeSync(job, stop).Run());
  return fs::WriteFileAtomic(job.root, DurableMarkPath(job.generation), "durable\n", kMarkMode);
}

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/capturing/truncated_files.h"

#include <fmt/format.h>

#include <set>

#include "agent/tree/root_layout.h"
#include "lib/api/reasons.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"
#include "lib/capture/stable_file.h"
#include "lib/capture/whole_file.h"
#include "lib/fs/file.h"

namespace cachewarm::agent {
namespace {

// A file is checked as soon as it has not been written for this time. One second is longer than the
// pauses between the tools of one compile, so an unfinished file is not checked. It is shorter than
// the several seconds in which a restarted container imports its libraries, so a truncated file is
// removed before the container maps it.
constexpr Duration kQuiet(1'000);

absl::Status CheckFile(const fs::Fd& file, const caches::Placement& placement,
                       const std::string& path) {
  CW_ASSIGN_OR_RETURN(const fs::FileStat before, fs::StatFile(file));
  absl::Status whole = capture::CheckWholeFile(file, placement, path, before.bytes);
  if (!absl::IsDataLoss(whole)) {
    return whole;
  }
  CW_RETURN_IF_ERROR(capture::CheckNoWriter(file, path));
  CW_ASSIGN_OR_RETURN(const fs::FileStat after, fs::StatFile(file));
  return capture::IsUnchanged(before, after) ? whole : absl::AbortedError(path);
}

}  // namespace

void TruncatedFiles::Sweep(const std::vector<std::string>& generations) {
  const std::set<std::string> active(generations.begin(), generations.end());
  const auto is_gone = [&](const auto& each) { return !active.contains(each.first); };
  std::erase_if(read_until_, is_gone);
  std::erase_if(suspects_, is_gone);
  const WallTime now = context_.clock.Now();
  for (const std::string& generation : active) {
    CollectWritten(generation);
    std::erase_if(suspects_[generation], [&](const auto& each) {
      return now - each.second >= kQuiet && CheckAndRemove(generation, each.first);
    });
  }
}

void TruncatedFiles::CollectWritten(const std::string& generation) {
  const WallTime now = context_.clock.Now();
  // The first time, read all events that the watcher has recorded for the tree, so that no write
  // before this first call is missed.
  const auto [until, is_new] = read_until_.try_emplace(generation, WallTime{});
  const EventRecord record = context_.watcher.ReadTree(generation, until->second, now);
  until->second = now;
  for (const FileEvent& event : record.events) {
    if (event.type == FileEventType::kWritten &&
        caches::CacheTable::AllPresets().Classify(event.path).native) {
      suspects_[generation][event.path] = event.time;
    }
  }
}

// Removes the file if it is truncated. Returns false if the file must be checked again later,
// because a process has it open for writing or changed it during the check.
bool TruncatedFiles::CheckAndRemove(const std::string& generation, const std::string& path) {
  const std::string below = fmt::format("{}/{}", GenerationPath(generation), path);
  OwnReads own_reads = context_.watcher.BeginOwnReads(generation);
  own_reads.Opening(path);
  const absl::StatusOr<fs::Fd> file = context_.root.OpenFile(below);
  if (!file.ok()) {
    return true;  // removed, or not a regular file: the engine does not load it
  }
  const absl::Status state =
      CheckFile(*file, caches::CacheTable::AllPresets().Classify(path), path);
  if (!absl::IsDataLoss(state)) {
    return !absl::IsAborted(state);
  }
  const absl::Status removed = context_.root.Remove(below);
  context_.metrics.failures.Add({std::string(api::reason::kTruncatedFile)});
  context_.log.Warning("truncated file removed",
                       {{"generation", generation},
                        {"path", path},
                        {"note", Message(state)},
                        {"removed", removed.ok()},
                        {"err", removed.ok() ? std::string() : Message(removed)}});
  return true;
}

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/sync/history.h"
#include "agent/sync/inventory.h"
#include "agent/sync/warmup_mount.h"
#include "lib/api/node_cache.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/fs/dir.h"
#include "lib/fs/file.h"

// The journal below .state: small JSON files, and for each tree a file that lists the tree's files,
// one per line. It outlives the agent, so a restarted agent knows what an earlier one did and
// found. Every file is replaced by one rename. If a file of the journal is missing or unreadable,
// information is lost but never a tree: readers return NOT_FOUND or INVALID_ARGUMENT, and callers
// continue without the record. Call on one thread at a time for each record.
namespace cachewarm::agent {

// A file that was extracted from a bundle into a tree, with its stat after extraction. While inode,
// size and times match, the file is unchanged.
struct EntryRecord {
  std::string path;
  std::string kind;
  Digest digest;
  int64_t bytes = 0;
  uint64_t inode = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  friend bool operator==(const EntryRecord&, const EntryRecord&) = default;
};

// Hashes of the parts of the engine's cache key that the config of a bundle contains
// (lib/capture/engine_factors.h).
struct BundleEngineFactors {
  Digest digest;
  std::map<std::string, std::string> factors;
  friend bool operator==(const BundleEngineFactors&, const BundleEngineFactors&) = default;
};

struct GenerationRecord {
  std::string id;
  Mount mount;
  std::vector<Digest> digests;
  int64_t files = 0;
  int64_t bytes = 0;
  double fetch_seconds = 0;
  DiskAmount usage;  // blocks and inodes of files and directories; zero in records of older agents
  std::vector<BundleEngineFactors> engine_factors;  // of those bundles that have some
  friend bool operator==(const GenerationRecord&, const GenerationRecord&) = default;
};

absl::Status WriteEntryRecords(const fs::Dir& root, const std::string& id,
                               const std::vector<EntryRecord>& entries, fs::Durable durable);
// Errors: NOT_FOUND, or INVALID_ARGUMENT with the number of the line.
absl::StatusOr<std::vector<EntryRecord>> ReadEntryRecords(const fs::Dir& root,
                                                          const std::string& id);

// Writes the entries first, then the record: if the record exists, so do the entries.
absl::Status WriteGenerationRecord(const fs::Dir& root, const GenerationRecord& record,
                                   const std::vector<EntryRecord>& entries,
                                   fs::Durable durable = fs::Durable::kNow);
absl::StatusOr<GenerationRecord> ReadGenerationRecord(const fs::Dir& root, const std::string& id);

// Removes the records of a tree that is no longer on the disk, except its DamagedTree.
absl::Status RemoveGenerationRecords(const fs::Dir& root, const std::string& id);

// Inode, size and times of a file. While they match, the file is unchanged.
struct FileStamp {
  std::string path;
  int64_t bytes = 0;
  uint64_t inode = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// Scrub results of one tree, in addition to its entry records.
struct ScrubRecord {
  WallTime at{};        // end of the last complete pass; zero: none
  int64_t entries = 0;  // length of the tree's entry list
  int64_t checked = 0;  // number of entries, from the first, whose content was read
  std::vector<FileStamp> modified_by_engine;  // files that engines wrote at paths of the bundle
  friend bool operator==(const ScrubRecord&, const ScrubRecord&) = default;
};

absl::Status WriteScrubRecord(const fs::Dir& root, const std::string& generation,
                              const ScrubRecord& record);
// Errors: NOT_FOUND before the first pass. After any error, the next pass reads all files of the
// tree.
absl::StatusOr<ScrubRecord> ReadScrubRecord(const fs::Dir& root, const std::string& generation);

// An entry in the history of a mount: its link leads to `generation` from the time `at` on.
struct Activation {
  std::string generation;
  WallTime at{};
  int renew = 0;  // value of the counter `renew` in the spec at that time
  friend bool operator==(const Activation&, const Activation&) = default;
};

inline constexpr size_t kActivationsMax = 64;

// Returns the activations of `mount`, oldest first; empty if none is recorded or the record is
// unreadable.
std::vector<Activation> ReadActivations(const fs::Dir& root, const Mount& mount);
// Appends an activation and drops the oldest above kActivationsMax. Call before the link is
// flipped.
absl::Status RecordActivation(const fs::Dir& root, const Mount& mount, const Activation& activation,
                              fs::Durable durable = fs::Durable::kNow);
// Makes the recorded activations consistent with `generation`, the present target of the link.
// Drops the last activation if a crash prevented its flip. Otherwise, if `generation` is not the
// last one, records that it is active since `now`.
absl::Status RepairActivations(const fs::Dir& root, const Mount& mount,
                               const std::string& generation, WallTime now);

using api::kMountedBefore;

// Returns the generations that a container started at `started_time` may have mounted, newest
// first. There may be several, because kubelet resolves the mount up to `before` before
// `started_time`, and API times are whole seconds. Empty only if nothing is recorded.
std::vector<std::string> GenerationsAt(const std::vector<Activation>& activations,
                                       WallTime started_time, Duration before);

// The history of a mount, whether its path still exists or not.
struct MountHistory {
  std::string warmup_uid;
  std::string run_as;
  std::vector<Activation> activations;
};

// Returns all histories, except those of the mounts in `known` (uid of the warmup, run-as). Skips
// unreadable records, and all above 10,000.
std::vector<MountHistory> ReadHistories(
    const fs::Dir& root, const std::set<std::pair<std::string, std::string>>& known = {});
// Removes the history of a mount whose path and trees are gone.
absl::Status RemoveHistory(const fs::Dir& root, const std::string& warmup_uid,
                           const std::string& run_as);

// Persist the results of captures, so that a restarted agent reports them without publishing again.
absl::Status WriteCaptureRecord(const fs::Dir& root, const api::CaptureStatus& capture);
std::vector<api::CaptureStatus> ReadCaptureRecords(const fs::Dir& root);
absl::Status RemoveCaptureRecord(const fs::Dir& root, const std::string& id);

// A bundle that this node must not fetch.
struct QuarantinedBundle {
  BundleName name;
  std::string reason;  // one of the reasons in lib/api/reasons.h
  std::string message;
  int failures = 0;
  WallTime at{};                  // time of the last failure
  std::optional<WallTime> until;  // time of the next retry; none: never
  // Version of the agent, limits, GPU type and CPU class at the time of the failure. The record is
  // ignored if they change, because the bundle may then be accepted.
  std::string criteria;
  friend bool operator==(const QuarantinedBundle&, const QuarantinedBundle&) = default;
};

absl::Status WriteQuarantinedBundle(const fs::Dir& root, const QuarantinedBundle& bundle);
// Reads all records. Removes records that cannot be read; their bundles are fetched once more.
std::vector<QuarantinedBundle> ReadQuarantinedBundles(const fs::Dir& root);
absl::Status RemoveQuarantinedBundle(const fs::Dir& root, const BundleName& name);

// Records that `generation` is damaged. After the call no link is flipped to it.
absl::Status WriteDamagedTree(const fs::Dir& root, const std::string& generation,
                              const DamagedTree& tree);
bool IsDamagedTree(const fs::Dir& root, const std::string& generation);
// Reads all records. A tree whose record cannot be read counts as damaged too.
absl::StatusOr<std::map<std::string, DamagedTree>> ReadDamagedTrees(const fs::Dir& root);
absl::Status RemoveDamagedTree(const fs::Dir& root, const std::string& generation);

// Makes the journal consistent with the links on disk. Drops the last activation of a mount if a
// crash prevented the flip of its link, and removes records of trees and mounts that no longer
// exist. Call at start, after SweepLeftovers().
absl::Status RepairJournal(const fs::Dir& root, WallTime now);

}  // namespace cachewarm::agent

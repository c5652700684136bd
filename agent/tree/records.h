// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/sync/mount.h"
#include "lib/api/node_cache.h"
#include "lib/base/clock.h"
#include "lib/base/digest.h"
#include "lib/fs/dir.h"
#include "lib/fs/file.h"

// The journal below .state: small JSON files, and the entries of a tree as lines, each replaced in
// one rename. A file that is missing or cannot be read costs knowledge, never a tree: readers say
// NOT_FOUND or INVALID_ARGUMENT and their callers go on without.
namespace cachewarm::agent {

// One file that a bundle put into a tree, and the inode it became. While the stamp holds, nobody
// has changed the file.
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

struct GenerationRecord {
  std::string id;
  Mount mount;
  std::vector<Digest> digests;
  int64_t files = 0;
  int64_t bytes = 0;
  double fetch_seconds = 0;
  friend bool operator==(const GenerationRecord&, const GenerationRecord&) = default;
};

// Entries first, then the record: who finds the record finds the entries.
absl::Status WriteGenerationRecord(const fs::Dir& root, const GenerationRecord& record,
                                   const std::vector<EntryRecord>& entries,
                                   fs::Durable durable = fs::Durable::kNow);
absl::StatusOr<GenerationRecord> ReadGenerationRecord(const fs::Dir& root, const std::string& id);
absl::StatusOr<std::vector<EntryRecord>> ReadEntryRecords(const fs::Dir& root,
                                                          const std::string& id);

// `generation` is what a mount's link leads to from `at` on.
struct Activation {
  std::string generation;
  WallTime at{};
  int renew = 0;  // which fresh start of the mount it belongs to
  friend bool operator==(const Activation&, const Activation&) = default;
};

inline constexpr size_t kActivationsMax = 64;

// Oldest first; empty when nothing is recorded.
std::vector<Activation> ReadActivations(const fs::Dir& root, const Mount& mount);
// Appends, forgetting the oldest above kActivationsMax. Written before the flip.
absl::Status RecordActivation(const fs::Dir& root, const Mount& mount,
                              const Activation& activation);
// After a crash between note and flip: drops what the link does not confirm.
absl::Status RepairActivations(const fs::Dir& root, const Mount& mount,
                               const std::string& generation, WallTime now);

// A container's mount is resolved when it is created, a moment before it counts as started.
inline constexpr Duration kMountedBefore{30'000};

// What the link may have led to when the container that started at `started_time` was made: a mount
// is resolved up to `before` earlier, and the API's times are whole seconds. Newest first, never
// empty unless nothing is recorded.
std::vector<std::string> GenerationsAt(const std::vector<Activation>& activations,
                                       WallTime started_time, Duration before);

// Captures that ended, so that a restarted agent repeats its answer instead of the work.
absl::Status WriteCaptureRecord(const fs::Dir& root, const api::CaptureStatus& capture);
std::vector<api::CaptureStatus> ReadCaptureRecords(const fs::Dir& root);
absl::Status RemoveCaptureRecord(const fs::Dir& root, const std::string& id);

}  // namespace cachewarm::agent

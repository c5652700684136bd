// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/facts.h"
#include "cli/run/coverage.h"
#include "lib/base/clock.h"
#include "lib/fs/dir.h"

// A cache directory belongs to machines of one GPU type and CPU class: host code of another class
// gives wrong results or crashes. The marker file in the directory names its kind of machine.
namespace cachewarm::cli {

// Directory for the files of cachewarm in a cache directory: marker, locks, unfinished downloads.
// It is never published, because no cache kind uses this name.
inline constexpr std::string_view kOwnFiles = ".cachewarm";
// Mode of the directories that cachewarm creates.
inline constexpr mode_t kCacheDirectoryMode = 0755;

// The kind of machine whose files a cache directory holds.
struct MachineKind {
  std::string gpu_type;
  std::string cpu_class;

  friend bool operator==(const MachineKind&, const MachineKind&) = default;
};
MachineKind KindOf(const Machine& machine);

// Text of the marker file, and its parser. INVALID_ARGUMENT for any other text. Pure.
std::string WriteMarker(const MachineKind& kind);
absl::StatusOr<MachineKind> ParseMarker(std::string_view text);

// Returns the directory that is used instead of `path` if that belongs to another kind of machine:
// a sibling whose name ends in the first 8 digits of the key.
std::string SiblingOf(std::string_view path, const Machine& machine);

// A cache directory with the marker of this machine.
struct ReadyDirectory {
  fs::Dir dir;
  std::string path;  // absolute
  std::string note;  // why `path` is a sibling; empty if it is the requested directory
};

struct DirectoryOptions {
  const Clock& clock;
  bool adopt = false;   // count files without a marker as compiled on this machine
  bool sibling = true;  // use SiblingOf() instead of a directory that cannot be used
};

// Opens or creates the cache directory `path`, absolute, and writes its marker. If it has the
// marker of another kind of machine, or cache files without a marker, does the same for SiblingOf()
// and leaves `path` unchanged. FAILED_PRECONDITION if no sibling may be used, or if that also
// belongs to another kind of machine; DEADLINE_EXCEEDED if another process holds the lock of the
// marker for 10 s.
absl::StatusOr<ReadyDirectory> OpenCacheDirectory(const std::string& path, const Machine& machine,
                                                  const DirectoryOptions& options);

// Returns the files of a cache directory that `table` allows to be published; empty if the
// directory cannot be read. `dir` may also be the directory of one kind, with the path `below`
// ("inductor") in the cache directory.
TreeSnapshot TakeSnapshot(const fs::Dir& dir,
                          const caches::CacheTable& table = caches::CacheTable::AllPresets(),
                          std::string_view below = "");

}  // namespace cachewarm::cli

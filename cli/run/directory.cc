// SPDX-License-Identifier: Apache-2.0
#include "cli/run/directory.h"

#include <sys/types.h>

#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"
#include "lib/fingerprint/key.h"
#include "lib/fs/file.h"
#include "lib/fs/lock.h"
#include "lib/fs/tree.h"

namespace cachewarm::cli {
namespace {

constexpr char kMarker[] = ".cachewarm/machine.json";
constexpr char kMarkerLock[] = ".cachewarm/machine.lock";
constexpr int64_t kMarkerBytesMax = 4096;
constexpr int kMarkerVersion = 1;
constexpr mode_t kMarkerMode = 0644;
constexpr Duration kMarkerWait{10'000};

absl::StatusOr<bool> HasCacheFiles(const fs::Dir& dir) {
  bool found = false;
  CW_RETURN_IF_ERROR(fs::Walk(dir, "", {}, [&found](const fs::WalkEntry& entry) {
    found = entry.stat.type == fs::FileType::kFile &&
            caches::CacheTable::AllPresets().Classify(entry.path).carried();
    return found ? fs::WalkNext::kStop : fs::WalkNext::kContinue;
  }));
  return found;
}

// Marks the directory for machines of `kind` if they may use it. Returns why they may not; "" if
// they may.
absl::StatusOr<std::string> Mark(const fs::Dir& dir, const MachineKind& kind,
                                 const DirectoryOptions& options) {
  CW_RETURN_IF_ERROR(dir.MakeDirs(kOwnFiles, kCacheDirectoryMode));
  // Without the lock, machines of two kinds could both find no marker and both write one.
  CW_ASSIGN_OR_RETURN(const fs::Fd lock,
                      fs::Lock(dir, kMarkerLock, {.clock = options.clock, .timeout = kMarkerWait}));
  const auto text = fs::ReadFile(dir, kMarker, kMarkerBytesMax);
  if (text.ok()) {
    const auto owner = ParseMarker(*text);
    if (!owner.ok()) {
      return fmt::format("its marker {} is damaged ({})", kMarker, Message(owner.status()));
    }
    return *owner == kind ? std::string()
                          : fmt::format(
                                "it belongs to GPU type {} and CPU class {}, this machine "
                                "is {} and {}",
                                owner->gpu_type, owner->cpu_class, kind.gpu_type, kind.cpu_class);
  }
  if (!absl::IsNotFound(text.status())) {
    return text.status();
  }
  CW_ASSIGN_OR_RETURN(const bool filled, HasCacheFiles(dir));
  if (filled && !options.adopt) {
    return fmt::format("it has cache files but no marker {} that names their machine", kMarker);
  }
  CW_RETURN_IF_ERROR(fs::WriteFileAtomic(dir, kMarker, WriteMarker(kind), kMarkerMode));
  return std::string();
}

}  // namespace

MachineKind KindOf(const Machine& machine) {
  return {.gpu_type = machine.facts.gpu_type, .cpu_class = machine.facts.cpu_class};
}

std::string WriteMarker(const MachineKind& kind) {
  return codec::DumpJson({{"version", kMarkerVersion},
                          {"gpuType", kind.gpu_type},
                          {"cpuClass", kind.cpu_class}}) +
         "\n";
}

absl::StatusOr<MachineKind> ParseMarker(std::string_view text) {
  CW_ASSIGN_OR_RETURN(const codec::Json json,
                      codec::ParseJson(text, {.bytes_max = size_t{kMarkerBytesMax}}));
  MachineKind kind;
  int version = 0;
  codec::Reader reader(json, "");
  reader.Require("version").Read("version", version, kMarkerVersion, kMarkerVersion);
  reader.Require("gpuType").Read("gpuType", kind.gpu_type);
  reader.Require("cpuClass").Read("cpuClass", kind.cpu_class);
  CW_RETURN_IF_ERROR(reader.status());
  return kind;
}

std::string SiblingOf(std::string_view path, const Machine& machine) {
  return fmt::format("{}-{}", path, fingerprint::Key8(machine.key));
}

absl::StatusOr<ReadyDirectory> OpenCacheDirectory(const std::string& path, const Machine& machine,
                                                  const DirectoryOptions& options) {
  std::string note;
  for (const std::string& each : {path, SiblingOf(path, machine)}) {
    CW_ASSIGN_OR_RETURN(fs::Dir dir, fs::Dir::OpenOrMake(each, kCacheDirectoryMode));
    CW_ASSIGN_OR_RETURN(const std::string problem, Mark(dir, KindOf(machine), options));
    if (problem.empty()) {
      if (!note.empty()) {
        note += fmt::format("; using {}", each);
      }
      return ReadyDirectory{.dir = std::move(dir), .path = each, .note = std::move(note)};
    }
    note = fmt::format("{}{}cannot use the cache directory {}: {}", note, note.empty() ? "" : "; ",
                       each, problem);
    if (!options.sibling) {
      return absl::FailedPreconditionError(note + "; choose another directory");
    }
  }
  return absl::FailedPreconditionError(note +
                                       "; remove one of these directories or choose another --dir");
}

TreeSnapshot TakeSnapshot(const fs::Dir& dir, const caches::CacheTable& table,
                          std::string_view below) {
  TreeSnapshot snapshot;
  const absl::Status walked = fs::Walk(dir, "", {}, [&](const fs::WalkEntry& entry) {
    if (entry.path == kOwnFiles) {
      return fs::WalkNext::kSkipDirectory;
    }
    const std::string path = below.empty() ? entry.path : fmt::format("{}/{}", below, entry.path);
    if (entry.stat.type == fs::FileType::kFile && table.Classify(path).carried()) {
      snapshot[path] = {entry.stat.bytes, entry.stat.mtime_ns};
    }
    return fs::WalkNext::kContinue;
  });
  if (!walked.ok()) {
    snapshot.clear();
  }
  return snapshot;
}

}  // namespace cachewarm::cli

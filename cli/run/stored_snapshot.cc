// SPDX-License-Identifier: Apache-2.0
#include "cli/run/stored_snapshot.h"

#include <cstdint>
#include <utility>

#include "cli/run/directory.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/fs/file.h"

namespace cachewarm::cli {
namespace {

constexpr char kSnapshotFile[] = ".cachewarm/snapshot.json";
constexpr int kSnapshotVersion = 1;
constexpr mode_t kSnapshotMode = 0644;
constexpr int64_t kSnapshotBytesMax = int64_t{64} << 20;

absl::Status NotASnapshot() {
  return absl::InvalidArgumentError(
      fmt::format("{} is not a snapshot of cachewarm", kSnapshotFile));
}

}  // namespace

std::string WriteSnapshot(const TreeSnapshot& snapshot) {
  codec::Json files = codec::Json::object();
  for (const auto& [path, state] : snapshot) {
    files[path] = codec::Json::array({state.first, state.second});
  }
  return codec::DumpJson({{"version", kSnapshotVersion}, {"files", std::move(files)}});
}

absl::StatusOr<TreeSnapshot> ParseSnapshot(std::string_view text) {
  CW_ASSIGN_OR_RETURN(const codec::Json json, codec::ParseJson(text));
  if (!json.is_object() || json.value("version", codec::Json()) != kSnapshotVersion ||
      !json.contains("files") || !json["files"].is_object()) {
    return NotASnapshot();
  }
  TreeSnapshot snapshot;
  for (const auto& [path, state] : json["files"].items()) {
    if (!state.is_array() || state.size() != 2 || !state[0].is_number_integer() ||
        !state[1].is_number_integer()) {
      return NotASnapshot();
    }
    snapshot[path] = {state[0].get<int64_t>(), state[1].get<int64_t>()};
  }
  return snapshot;
}

TreeSnapshot ReadStoredSnapshot(const fs::Dir& dir) {
  const auto text = fs::ReadFile(dir, kSnapshotFile, kSnapshotBytesMax);
  return text.ok() ? ParseSnapshot(*text).value_or(TreeSnapshot()) : TreeSnapshot();
}

absl::Status StoreSnapshot(const fs::Dir& dir, const TreeSnapshot& snapshot) {
  const std::string text = WriteSnapshot(snapshot);
  if (static_cast<int64_t>(text.size()) > kSnapshotBytesMax) {
    return absl::ResourceExhaustedError(
        fmt::format("{} would be longer than {} bytes", kSnapshotFile, kSnapshotBytesMax));
  }
  CW_RETURN_IF_ERROR(dir.MakeDirs(kOwnFiles, kCacheDirectoryMode));
  return fs::WriteFileAtomic(dir, kSnapshotFile, text, kSnapshotMode);
}

TreeSnapshot KeepOlder(const TreeSnapshot& stored, TreeSnapshot now) {
  for (auto& [path, state] : now) {
    if (const auto older = stored.find(path); older != stored.end()) {
      state = older->second;
    }
  }
  return now;
}

}  // namespace cachewarm::cli

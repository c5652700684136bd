// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/quarantine.h"

#include <fmt/format.h>

#include <utility>

#include "agent/tree/layout.h"
#include "agent/tree/record_file.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"

namespace cachewarm::agent {
namespace {

using codec::Json;
using codec::Reader;

constexpr size_t kMessageBytesMax = size_t{64} << 10;

int64_t Milliseconds(WallTime time) {
  return time.time_since_epoch().count();
}

WallTime ReadTime(Reader& reader, std::string_view name) {
  int64_t milliseconds = 0;
  reader.Read(name, milliseconds);
  return WallTime(Duration(milliseconds));
}

Digest ReadDigest(Reader& reader, std::string_view name) {
  std::string text;
  reader.Read(name, text);
  absl::StatusOr<Digest> digest = Digest::Parse(text);
  if (!digest.ok()) {
    reader.Fail(name, Message(digest.status()));
    return {};
  }
  return *std::move(digest);
}

absl::StatusOr<QuarantinedBundle> DecodeBundle(const Json& object, const std::string& path) {
  QuarantinedBundle bundle;
  int64_t failures = 0;
  Reader reader(object, path);
  reader.Require("warmupUID").Read("warmupUID", bundle.name.warmup_uid);
  bundle.name.digest = ReadDigest(reader, "digest");
  reader.Read("reason", bundle.reason).Read("message", bundle.message, kMessageBytesMax);
  reader.Read("failures", failures, 0, INT32_MAX).Read("criteria", bundle.criteria);
  bundle.failures = static_cast<int>(failures);
  bundle.at = ReadTime(reader, "atMilliseconds");
  if (object.contains("untilMilliseconds")) {
    bundle.until = ReadTime(reader, "untilMilliseconds");
  }
  CW_RETURN_IF_ERROR(reader.status());
  if (QuarantinedBundlePath(bundle.name.warmup_uid, bundle.name.digest) != path) {
    return absl::InvalidArgumentError(
        fmt::format("{}: the record describes another bundle than its file name", path));
  }
  return bundle;
}

absl::StatusOr<DamagedTree> DecodeTree(const Json& object, const std::string& path) {
  DamagedTree tree;
  Reader reader(object, path);
  int64_t inode = 0;
  tree.at = ReadTime(reader, "atMilliseconds");
  reader.Read("path", tree.path)
      .Read("message", tree.message, kMessageBytesMax)
      .Read("untouched", tree.untouched);
  reader.Read("inode", inode);
  tree.inode = static_cast<uint64_t>(inode);
  tree.digest = ReadDigest(reader, "digest");
  CW_RETURN_IF_ERROR(reader.status());
  return tree;
}

}  // namespace

absl::Status WriteQuarantinedBundle(const fs::Dir& root, const QuarantinedBundle& bundle) {
  Json object = {{"warmupUID", bundle.name.warmup_uid},
                 {"digest", bundle.name.digest.ToString()},
                 {"reason", bundle.reason},
                 {"message", bundle.message},
                 {"failures", bundle.failures},
                 {"atMilliseconds", Milliseconds(bundle.at)},
                 {"criteria", bundle.criteria}};
  if (bundle.until.has_value()) {
    object["untilMilliseconds"] = Milliseconds(*bundle.until);
  }
  return WriteRecord(root, QuarantinedBundlePath(bundle.name.warmup_uid, bundle.name.digest),
                     object);
}

std::vector<QuarantinedBundle> ReadQuarantinedBundles(const fs::Dir& root) {
  std::vector<QuarantinedBundle> bundles;
  // If the directory is unreadable, the list is empty, and the quarantined bundles are fetched once
  // more.
  ForEachRecord(root, kQuarantineRecords, [&](const std::string& path) {
    const absl::StatusOr<Json> object = ReadRecord(root, path, kRecordBytesMax);
    absl::StatusOr<QuarantinedBundle> bundle =
        object.ok() ? DecodeBundle(*object, path) : object.status();
    if (bundle.ok()) {
      bundles.push_back(*std::move(bundle));
    } else {
      root.Remove(path).IgnoreError();
    }
  }).IgnoreError();
  return bundles;
}

absl::Status RemoveQuarantinedBundle(const fs::Dir& root, const BundleName& name) {
  return root.Remove(QuarantinedBundlePath(name.warmup_uid, name.digest));
}

absl::Status WriteDamagedTree(const fs::Dir& root, const std::string& generation,
                              const DamagedTree& tree) {
  return WriteRecord(root, DamagedTreePath(generation),
                     {{"atMilliseconds", Milliseconds(tree.at)},
                      {"path", tree.path},
                      {"message", tree.message},
                      {"digest", tree.digest.ToString()},
                      {"inode", tree.inode},
                      {"untouched", tree.untouched}});
}

bool IsDamagedTree(const fs::Dir& root, const std::string& generation) {
  const absl::StatusOr<bool> exists = root.Exists(DamagedTreePath(generation));
  // On error, treat the tree as damaged: replacing a good tree is better than using a damaged one.
  return !exists.ok() || *exists;
}

absl::StatusOr<std::map<std::string, DamagedTree>> ReadDamagedTrees(const fs::Dir& root) {
  std::map<std::string, DamagedTree> trees;
  CW_RETURN_IF_ERROR(ForEachRecord(root, kDamagedRecords, [&](const std::string& path) {
    const std::string id = DamagedTreeOf(path);
    if (!IsGenerationId(id)) {
      return;
    }
    const absl::StatusOr<Json> object = ReadRecord(root, path, kRecordBytesMax);
    absl::StatusOr<DamagedTree> tree = object.ok() ? DecodeTree(*object, path) : object.status();
    trees[id] = tree.ok() ? *std::move(tree) : DamagedTree();
  }));
  return trees;
}

absl::Status RemoveDamagedTree(const fs::Dir& root, const std::string& generation) {
  return root.Remove(DamagedTreePath(generation));
}

}  // namespace cachewarm::agent

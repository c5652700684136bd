// SPDX-License-Identifier: Apache-2.0
#include "agent/tree/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "agent/sync/tree_names.h"
#include "agent/tree/record_file.h"
#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "lib/base/status.h"
#include "lib/fs/tree.h"

// The JSON records except activations, and the repair of the journal.
namespace cachewarm::agent {
namespace {

constexpr size_t kDigestsMax = 64;
constexpr size_t kMessageBytesMax = size_t{64} << 10;
constexpr size_t kStampsMax = 1'000'000;
constexpr int64_t kScrubBytesMax = int64_t{128} << 20;

constexpr auto kEngineFactorsFields = [](auto& io, BundleEngineFactors& bundle) {
  io("digest", bundle.digest, {.required = true});
  io("factors", bundle.factors);
};

constexpr auto kGenerationFields = [](auto& io, GenerationRecord& record) {
  io("id", record.id, {.required = true});
  io("namespace", record.mount.ns);
  io("name", record.mount.name);
  io("warmupUID", record.mount.uid);
  io("runAs", record.mount.run_as);
  io("digests", record.digests, {.size_max = kDigestsMax});
  io("files", record.files);
  io("bytes", record.bytes);
  io("fetchSeconds", record.fetch_seconds);
  io("diskBytes", record.usage.bytes, {.min = 0});
  io("inodes", record.usage.inodes, {.min = 0});
  io.List("engineFactors", record.engine_factors, kDigestsMax, kEngineFactorsFields);
};

constexpr auto kStampFields = [](auto& io, FileStamp& file) {
  io("path", file.path, {.required = true});
  io("bytes", file.bytes);
  io("inode", file.inode);
  io("mtime", file.mtime_ns);
  io("ctime", file.ctime_ns);
};

constexpr auto kScrubFields = [](auto& io, ScrubRecord& record) {
  io("atMilliseconds", record.at);
  io("entries", record.entries, {.min = 0});
  io("checked", record.checked, {.min = 0});
  io.List("modifiedByEngine", record.modified_by_engine, kStampsMax, kStampFields);
};

constexpr auto kCaptureFields = [](auto& io, api::CaptureStatus& capture) {
  std::string state(api::Name(capture.state));
  io("id", capture.id, {.required = true});
  io("state", state);
  io("digest", capture.digest);
  io("bytes", capture.bytes);
  io("files", capture.files);
  io("native", capture.native);
  io("compileSeconds", capture.compile_seconds);
  io("leftFiles", capture.left_behind.files, {.min = 0});
  io("leftBytes", capture.left_behind.bytes, {.min = 0});
  io("leftDirectories", capture.left_behind.directories);
  io("reason", capture.reason);
  io("message", capture.message);
  const bool is_pushed = state == api::Name(api::CaptureState::kPushed);
  capture.state = is_pushed ? api::CaptureState::kPushed : api::CaptureState::kFailed;
};

constexpr auto kBundleFields = [](auto& io, QuarantinedBundle& bundle) {
  io("warmupUID", bundle.name.warmup_uid, {.required = true});
  io("digest", bundle.name.digest, {.required = true});
  io("reason", bundle.reason);
  io("message", bundle.message, {.size_max = kMessageBytesMax});
  io("failures", bundle.failures);
  io("criteria", bundle.criteria);
  io("atMilliseconds", bundle.at);
  io("untilMilliseconds", bundle.until);
};

constexpr auto kDamageFields = [](auto& io, DamagedTree& tree) {
  io("atMilliseconds", tree.at);
  io("path", tree.path);
  io("message", tree.message, {.size_max = kMessageBytesMax});
  io("digest", tree.digest, {.required = true});
  io("inode", tree.inode);
  io("untouched", tree.untouched);
};

// Removes the histories of mounts that were evicted: neither their path nor any tree exists.
absl::Status RemoveOrphanHistories(const fs::Dir& root, const Inventory& inventory) {
  std::set<std::pair<std::string, std::string>> present;
  for (const auto& [mount, link] : inventory.links) {
    present.insert({mount.uid, mount.run_as});
  }
  for (const MountHistory& history : ReadHistories(root)) {
    const bool has_tree = std::any_of(
        history.activations.begin(), history.activations.end(),
        [&](const Activation& each) { return inventory.generations.contains(each.generation); });
    if (!has_tree && !present.contains({history.warmup_uid, history.run_as})) {
      CW_RETURN_IF_ERROR(RemoveHistory(root, history.warmup_uid, history.run_as));
    }
  }
  return absl::OkStatus();
}

absl::Status RemoveOrphanRecords(const fs::Dir& root, const Inventory& inventory) {
  std::vector<std::string> orphans;
  CW_RETURN_IF_ERROR(fs::Walk(root, kGenerationRecords, {}, [&](const fs::WalkEntry& entry) {
    const std::string id = entry.path.substr(0, entry.path.find('.'));
    if (!inventory.generations.contains(id)) {
      orphans.push_back(fmt::format("{}/{}", kGenerationRecords, entry.path));
    }
    return fs::WalkNext::kSkipDirectory;
  }));
  for (const std::string& path : orphans) {
    CW_RETURN_IF_ERROR(root.Remove(path));
  }
  // Also without orphans: an earlier process may have removed durable marks and been killed before
  // it synced that (RemoveDurableMark()).
  return root.Sync(kGenerationRecords);
}

}  // namespace

absl::Status WriteGenerationRecord(const fs::Dir& root, const GenerationRecord& record,
                                   const std::vector<EntryRecord>& entries, fs::Durable durable) {
  CW_RETURN_IF_ERROR(WriteEntryRecords(root, record.id, entries, durable));
  return WriteRecord(root, GenerationRecordPath(record.id), kGenerationFields, record, durable);
}

absl::Status RemoveGenerationRecords(const fs::Dir& root, const std::string& id) {
  CW_RETURN_IF_ERROR(root.Remove(GenerationRecordPath(id)));
  CW_RETURN_IF_ERROR(root.Remove(EntriesRecordPath(id)));
  return root.Remove(ScrubRecordPath(id));
}

absl::StatusOr<GenerationRecord> ReadGenerationRecord(const fs::Dir& root, const std::string& id) {
  const std::string path = GenerationRecordPath(id);
  CW_ASSIGN_OR_RETURN(GenerationRecord record,
                      ReadRecord<GenerationRecord>(root, path, kGenerationFields));
  if (record.id != id) {
    return absl::InvalidArgumentError(fmt::format("{}.id: does not match the file name", path));
  }
  return record;
}

absl::Status WriteScrubRecord(const fs::Dir& root, const std::string& generation,
                              const ScrubRecord& record) {
  return WriteRecord(root, ScrubRecordPath(generation), kScrubFields, record);
}

absl::StatusOr<ScrubRecord> ReadScrubRecord(const fs::Dir& root, const std::string& generation) {
  return ReadRecord<ScrubRecord>(root, ScrubRecordPath(generation), kScrubFields, kScrubBytesMax);
}

absl::Status WriteCaptureRecord(const fs::Dir& root, const api::CaptureStatus& capture) {
  return WriteRecord(root, CaptureRecordPath(capture.id), kCaptureFields, capture);
}

std::vector<api::CaptureStatus> ReadCaptureRecords(const fs::Dir& root) {
  std::vector<api::CaptureStatus> captures;
  // A record that cannot be read is skipped, and its capture is done again.
  ForEachRecord(root, kCaptureRecords, [&](const std::string& path) {
    absl::StatusOr<api::CaptureStatus> capture =
        ReadRecord<api::CaptureStatus>(root, path, kCaptureFields);
    if (capture.ok()) {
      captures.push_back(*std::move(capture));
    }
  }).IgnoreError();
  return captures;
}

absl::Status RemoveCaptureRecord(const fs::Dir& root, const std::string& id) {
  return root.Remove(CaptureRecordPath(id));
}

absl::Status WriteQuarantinedBundle(const fs::Dir& root, const QuarantinedBundle& bundle) {
  return WriteRecord(root, QuarantinedBundlePath(bundle.name.warmup_uid, bundle.name.digest),
                     kBundleFields, bundle);
}

std::vector<QuarantinedBundle> ReadQuarantinedBundles(const fs::Dir& root) {
  std::vector<QuarantinedBundle> bundles;
  // If the directory is unreadable, the list is empty, and the quarantined bundles are fetched once
  // more.
  ForEachRecord(root, kQuarantineRecords, [&](const std::string& path) {
    absl::StatusOr<QuarantinedBundle> bundle =
        ReadRecord<QuarantinedBundle>(root, path, kBundleFields);
    if (bundle.ok() &&
        QuarantinedBundlePath(bundle->name.warmup_uid, bundle->name.digest) == path) {
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
  return WriteRecord(root, DamagedTreePath(generation), kDamageFields, tree);
}

bool IsDamagedTree(const fs::Dir& root, const std::string& generation) {
  const absl::StatusOr<bool> exists = root.Exists(DamagedTreePath(generation));
  // On error, treat the tree as damaged: replacing a good tree is better than using a damaged one.
  return !exists.ok() || *exists;
}

absl::StatusOr<std::map<std::string, DamagedTree>> ReadDamagedTrees(const fs::Dir& root) {
  std::map<std::string, DamagedTree> trees;
  CW_RETURN_IF_ERROR(ForEachRecord(root, kDamagedRecords, [&](const std::string& path) {
    if (const std::string id = DamagedTreeOf(path); IsGenerationId(id)) {
      trees[id] = ReadRecord<DamagedTree>(root, path, kDamageFields).value_or(DamagedTree());
    }
  }));
  return trees;
}

absl::Status RemoveDamagedTree(const fs::Dir& root, const std::string& generation) {
  return root.Remove(DamagedTreePath(generation));
}

absl::Status RepairJournal(const fs::Dir& root, WallTime now) {
  CW_ASSIGN_OR_RETURN(const Inventory inventory, ScanInventory(root));
  for (const auto& [mount, link] : inventory.links) {
    if (!link.generation.empty()) {
      CW_RETURN_IF_ERROR(RepairActivations(root, mount, link.generation, now));
    }
  }
  // A new tree of the same name would otherwise count as damaged.
  for (const auto& [id, tree] : inventory.damaged) {
    if (!inventory.generations.contains(id)) {
      CW_RETURN_IF_ERROR(RemoveDamagedTree(root, id));
    }
  }
  CW_RETURN_IF_ERROR(RemoveOrphanHistories(root, inventory));
  return RemoveOrphanRecords(root, inventory);
}

}  // namespace cachewarm::agent

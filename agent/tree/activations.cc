// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "agent/sync/tree_names.h"
#include "agent/tree/journal.h"
#include "agent/tree/record_file.h"
#include "agent/tree/root_layout.h"
#include "lib/base/status.h"

// The history of a mount: the trees to which its link has led.
namespace cachewarm::agent {
namespace {

struct LinkRecord {
  std::vector<Activation> activations;
};

constexpr auto kActivationFields = [](auto& io, Activation& activation) {
  io("generation", activation.generation);
  io("atMilliseconds", activation.at);
  io("renew", activation.renew);
};

constexpr auto kLinkFields = [](auto& io, LinkRecord& record) {
  io.List("activations", record.activations, 4 * kActivationsMax, kActivationFields);
};

absl::Status WriteActivations(const fs::Dir& root, const Mount& mount,
                              std::vector<Activation> activations,
                              fs::Durable durable = fs::Durable::kNow) {
  return WriteRecord(root, LinkRecordPath(mount), kLinkFields, LinkRecord{std::move(activations)},
                     durable);
}

}  // namespace

std::vector<Activation> ReadActivations(const fs::Dir& root, const Mount& mount) {
  absl::StatusOr<LinkRecord> record =
      ReadRecord<LinkRecord>(root, LinkRecordPath(mount), kLinkFields);
  if (!record.ok()) {
    return {};
  }
  std::erase_if(record->activations, [](const Activation& activation) {
    return !IsGenerationId(activation.generation);
  });
  return std::move(record->activations);
}

std::vector<MountHistory> ReadHistories(
    const fs::Dir& root, const std::set<std::pair<std::string, std::string>>& known) {
  std::vector<MountHistory> histories;
  ForEachRecord(root, kLinkRecords, [&](const std::string& path) {
    const auto [uid, run_as] = OwnerOfLinkRecord(path);
    if (!uid.empty() && !known.contains({uid, run_as})) {
      histories.push_back({.warmup_uid = uid,
                           .run_as = run_as,
                           .activations = ReadActivations(root, {.uid = uid, .run_as = run_as})});
    }
  }).IgnoreError();
  return histories;
}

absl::Status RemoveHistory(const fs::Dir& root, const std::string& warmup_uid,
                           const std::string& run_as) {
  return root.Remove(LinkRecordPath({.uid = warmup_uid, .run_as = run_as}));
}

absl::Status RecordActivation(const fs::Dir& root, const Mount& mount, const Activation& activation,
                              fs::Durable durable) {
  std::vector<Activation> activations = ReadActivations(root, mount);
  activations.push_back(activation);
  if (activations.size() > kActivationsMax) {
    activations.erase(activations.begin(),
                      activations.end() - static_cast<ptrdiff_t>(kActivationsMax));
  }
  return WriteActivations(root, mount, std::move(activations), durable);
}

absl::Status RepairActivations(const fs::Dir& root, const Mount& mount,
                               const std::string& generation, WallTime now) {
  std::vector<Activation> activations = ReadActivations(root, mount);
  if (!activations.empty() && activations.back().generation == generation) {
    return absl::OkStatus();
  }
  // After a crash, the journal may be one activation ahead of the link: drop that one. Any other
  // difference means that the link was changed manually at an unknown time: record it with the
  // present time.
  if (activations.size() > 1 && activations[activations.size() - 2].generation == generation) {
    activations.pop_back();
  } else {
    activations.push_back({generation, now});
  }
  return WriteActivations(root, mount, std::move(activations));
}

std::vector<std::string> GenerationsAt(const std::vector<Activation>& activations,
                                       WallTime started_time, Duration before) {
  constexpr Duration kApiResolution(1000);
  std::vector<std::string> candidates;
  for (auto it = activations.rbegin(); it != activations.rend(); ++it) {
    if (it->at > started_time + kApiResolution) {
      continue;
    }
    if (std::find(candidates.begin(), candidates.end(), it->generation) == candidates.end()) {
      candidates.push_back(it->generation);
    }
    if (it->at <= started_time - before) {
      break;
    }
  }
  // The container started before the oldest record, so the oldest recorded tree is the best guess.
  if (candidates.empty() && !activations.empty()) {
    candidates.push_back(activations.front().generation);
  }
  return candidates;
}

}  // namespace cachewarm::agent

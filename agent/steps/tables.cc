// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/tables.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"

namespace cachewarm::agent {
namespace {

std::shared_ptr<const caches::CacheTable> Presets() {
  // The returned pointer owns nothing: the table is static and is never deleted.
  return {std::shared_ptr<void>(), &caches::CacheTable::DefaultPresets()};
}

}  // namespace

void Tables::Update(const std::vector<api::WantedWarmup>& warmups) {
  std::erase_if(rows_, [&](const auto& row) {
    return std::none_of(warmups.begin(), warmups.end(),
                        [&](const auto& warmup) { return warmup.uid == row.first; });
  });
  for (const api::WantedWarmup& warmup : warmups) {
    const auto found = rows_.find(warmup.uid);
    if (found != rows_.end() && found->second.caches == warmup.caches) {
      continue;
    }
    Row row{.ns = warmup.ns, .name = warmup.name, .caches = warmup.caches, .table = Presets()};
    absl::StatusOr<caches::CacheTable> table = caches::CacheTable::Make(warmup.caches);
    if (table.ok()) {
      row.table = std::make_shared<const caches::CacheTable>(*std::move(table));
    } else {
      row.problem = Message(table.status());
    }
    rows_[warmup.uid] = std::move(row);
  }
}

std::shared_ptr<const caches::CacheTable> Tables::Of(const std::string& warmup_uid) const {
  const auto found = rows_.find(warmup_uid);
  return found == rows_.end() ? Presets() : found->second.table;
}

Mount Tables::MountOf(const std::string& warmup_uid, const std::string& run_as) const {
  const auto found = rows_.find(warmup_uid);
  return found == rows_.end() ? Mount{"", "", warmup_uid, run_as}
                              : Mount{found->second.ns, found->second.name, warmup_uid, run_as};
}

std::string Tables::Problem(const std::string& warmup_uid) const {
  const auto found = rows_.find(warmup_uid);
  return found == rows_.end() ? std::string() : found->second.problem;
}

}  // namespace cachewarm::agent

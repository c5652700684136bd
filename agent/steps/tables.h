// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/sync/mount.h"
#include "lib/api/node_cache.h"
#include "lib/caches/cache_table.h"

namespace cachewarm::agent {

// The cache table of each warmup, made once per spec.caches. One thread.
class Tables {
 public:
  // Follows the spec. A warmup whose caches are refused gets the presets; why is in Problem().
  void Update(const std::vector<api::WantedWarmup>& warmups);

  // All presets for a warmup that is not in the spec.
  std::shared_ptr<const caches::CacheTable> Of(const std::string& warmup_uid) const;
  // The mount of that warmup's pods; without namespace and name when it is not in the spec.
  Mount MountOf(const std::string& warmup_uid, const std::string& run_as) const;
  // Empty when the caches of the warmup are understood.
  std::string Problem(const std::string& warmup_uid) const;

 private:
  struct Row {
    std::string ns;
    std::string name;
    std::vector<api::CacheChoice> caches;
    std::shared_ptr<const caches::CacheTable> table;
    std::string problem;
  };
  std::map<std::string, Row> rows_;  // by warmup uid
};

}  // namespace cachewarm::agent

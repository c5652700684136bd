// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/sync/warmup_mount.h"
#include "lib/api/node_cache.h"
#include "lib/caches/cache_table.h"

namespace cachewarm::agent {

// The cache table of each warmup, made again only when its spec.caches changes. Call on one thread.
class Tables {
 public:
  // Updates the tables to the spec. A warmup with invalid caches gets the default presets, and
  // Problem() returns the reason.
  void Update(const std::vector<api::WantedWarmup>& warmups);

  // Returns the table of the warmup; the default presets if it is not in the spec.
  std::shared_ptr<const caches::CacheTable> Of(const std::string& warmup_uid) const;
  // Returns the mount of the pods of the warmup. Namespace and name are empty if the warmup is not
  // in the spec.
  Mount MountOf(const std::string& warmup_uid, const std::string& run_as) const;
  // Returns why the caches of the warmup are invalid; empty if they are valid.
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

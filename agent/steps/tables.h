// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/api/node_cache.h"
#include "lib/caches/cache_table.h"

namespace cachewarm::agent {

// The cache table of each warmup, made once per spec.caches. One thread.
class Tables {
 public:
  // Follows the spec. A warmup whose caches are refused gets the presets; why is in Problem().
  void Follow(const std::vector<api::WantedWarmup>& warmups);

  // All presets for a warmup that is not in the spec.
  std::shared_ptr<const caches::CacheTable> Of(const std::string& warmup_uid) const;
  // Empty when the caches of the warmup are understood.
  std::string Problem(const std::string& warmup_uid) const;

 private:
  struct Row {
    std::vector<api::CacheChoice> caches;
    std::shared_ptr<const caches::CacheTable> table;
    std::string problem;
  };
  std::map<std::string, Row> rows_;  // by warmup uid
};

}  // namespace cachewarm::agent

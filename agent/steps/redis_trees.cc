// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/redis_trees.h"

#include <string_view>
#include <utility>

#include "agent/tree/root_layout.h"

namespace cachewarm::agent {
namespace {

// The preset whose pods use the Redis endpoint (lib/caches/kinds/torchinductor_redis.cc).
constexpr std::string_view kRedisPreset = "torchinductor-redis";

}  // namespace

std::set<std::string> RedisTrees::Update(const Inventory& inventory) {
  for (const auto& [mount, link] : inventory.links) {
    if (tables_.Of(mount.uid)->Selects(kRedisPreset)) {
      generations_.insert(link.generation);
    } else {
      generations_.erase(link.generation);
    }
  }
  std::set<std::string> watched;
  for (std::string& generation : watched_.ActiveWithin(Duration::max())) {
    watched.insert(std::move(generation));
  }
  std::erase_if(generations_, [&](const auto& each) { return !watched.contains(each); });
  std::set<std::string> paths;
  for (const std::string& generation : generations_) {
    paths.insert(GenerationPath(generation));
  }
  return paths;
}

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/sync/plan.h"
#include "agent/sync/tree_names.h"

// Describes nodes for tests of the plan.
namespace cachewarm::agent {

inline const MonoTime kNow{std::chrono::seconds(1000)};

inline Digest DigestNumber(int number) {
  return DigestOf(std::to_string(number));
}

inline api::WantedBundle Bundle(int number, int64_t bytes = 100) {
  return {.key = fmt::format("key-{}", number), .digest = DigestNumber(number), .bytes = bytes};
}

inline api::WantedWarmup Warmup(std::vector<api::WantedBundle> bundles = {}) {
  return {.uid = "uid-1",
          .ns = "team",
          .name = "llama",
          .run_as = {"u1000"},
          .bundles = std::move(bundles)};
}

inline Mount MountOf(const api::WantedWarmup& warmup, const std::string& run_as = "u1000") {
  return {warmup.ns, warmup.name, warmup.uid, run_as};
}

// A node described by a test. Steps() returns the plan as text.
class Node {
 public:
  Node& Want(const api::WantedWarmup& warmup) {
    spec_.warmups.push_back(warmup);
    return *this;
  }
  Node& Linked(const Mount& mount, const std::string& generation,
               LinkState state = LinkState::kActive) {
    inventory.links[mount] = {state, generation};
    inventory.generations[generation];
    return *this;
  }
  Node& Shows(const Mount& mount, const std::vector<Digest>& digests) {
    const std::string id = GenerationId(mount, digests);
    inventory.generations[id].digests = digests;
    return Linked(mount, id);
  }
  Plan Make() const {
    return MakePlan({.desired = spec_,
                     .inventory = inventory,
                     .history = history,
                     .disk = disk,
                     .now = kNow,
                     .is_known = is_known});
  }
  std::vector<std::string> Steps() const {
    std::vector<std::string> steps;
    for (const Step& step : Make().steps) {
      steps.push_back(Describe(step));
    }
    return steps;
  }

  Inventory inventory;
  History history;
  DiskLimits disk;
  bool is_known = true;

 private:
  static std::string Describe(const Step& step) {
    if (const auto* prepare = std::get_if<Prepare>(&step)) {
      return "prepare " + prepare->mount.run_as;
    }
    if (const auto* renew = std::get_if<Renew>(&step)) {
      return fmt::format("renew {} {}", renew->mount.run_as, renew->renew);
    }
    if (const auto* activate = std::get_if<Activate>(&step)) {
      return fmt::format("activate {} {}", activate->mount.run_as, activate->generation);
    }
    if (const auto* fetch = std::get_if<Fetch>(&step)) {
      return fmt::format("fetch {} {} of {}", fetch->mount.run_as, fetch->generation,
                         fetch->bundles.size());
    }
    return "discard " + std::get<Discard>(step).staging;
  }

  api::NodeCacheSpec spec_;
};

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/evidence/events.h"
#include "agent/steps/context.h"
#include "agent/steps/start_spans.h"
#include "agent/sync/inventory.h"
#include "agent/sync/warmup_mount.h"
#include "lib/api/node_cache.h"
#include "lib/base/clock.h"

namespace cachewarm::agent {

// The files that a harvest may take from a tree (docs/design/0053-harvest.md).
struct HarvestSource {
  std::shared_ptr<const UsedFiles> used;  // files that running pods used after they were Ready
  std::string refusal;                    // why the tree cannot be harvested; empty: it can
  std::string wait;                       // why it cannot be harvested yet; empty: it can
};

// Records, for warmups that harvest (WantedWarmup::harvest), the units that running pods compiled
// in each tree after they were Ready, and the files that they used meanwhile. Files of a start are
// never among them, except those that a running pod used again. Entries are read late, as
// LateCompiles does. Entries from before a restart of the agent are not known. Call on the sync
// thread.
class LateUnits {
 public:
  static constexpr Duration kJudgedAfter{30'000};
  static constexpr Duration kPollMin{10'000};    // between two readings of the file events
  static constexpr Duration kReportMin{60'000};  // between two offers of a tree that grows
  // A tree with more of them is not harvested.
  static constexpr size_t kUnitsMax = 10'000;
  static constexpr size_t kFilesMax = 50'000;

  // Both arguments must outlive this object. Update `spans` before each Poll().
  LateUnits(const Context& context, const Tables& tables, const StartSpans& spans)
      : context_(context), tables_(tables), spans_(spans) {}

  // Reads the file events of `trees`, the watched ones.
  void Poll(const std::vector<api::WantedWarmup>& wanted, const std::map<std::string, Mount>& trees,
            const Inventory& inventory);

  // Returns the tree of the warmup whose late units include the most that its active tree lacks; of
  // several, the first by name. If trees were renewed (WantedWarmup::renew), an active tree
  // precedes the others: after a suspension, the operator harvests no other. A tree that cannot be
  // harvested comes after all others. If only units of the same tree were added, returns the last
  // offer for kReportMin, because each change is a write of the NodeCache.
  api::Harvestable OfferOf(const std::string& warmup_uid);

  // Returns what the harvest `request` may capture now: nothing until no pod that may have mounted
  // the tree is starting, and no file of the tree was written for kJudgedAfter.
  HarvestSource SourceOf(const api::CaptureRequest& request) const;

 private:
  struct Tree {
    Mount mount;
    WallTime judged_until{};
    std::set<std::string> units;
    std::shared_ptr<const UsedFiles> used = std::make_shared<const UsedFiles>();
    std::string refusal;
    // Of the last Poll(): the units that the active tree of the mount lacks.
    int lacking = 0;
    bool goes_first = false;  // it is active, and trees of its warmup were renewed
  };
  // Units of the bundles of the active tree of a mount.
  struct ActiveUnits {
    std::string generation;
    std::set<std::string> units;
  };

  struct Reported {
    api::Harvestable offer;
    MonoTime at{};
  };

  void Judge(const std::string& generation, WallTime until, Tree& tree) const;
  api::Harvestable BestOffer(const std::string& warmup_uid) const;
  std::string UnitOf(const Mount& mount, const std::string& path) const;
  const std::set<std::string>& UnitsOfActive(const Mount& mount, const std::string& generation);
  void CountLacking(const Inventory& inventory, Tree& tree);
  std::string RefusalOf(const std::string& generation, const Tree& tree) const;

  const Context& context_;
  const Tables& tables_;
  const StartSpans& spans_;
  std::map<std::string, Tree> trees_;  // by generation
  std::map<Mount, ActiveUnits> active_;
  std::map<std::string, Reported> reported_;  // by uid of the warmup
  MonoTime polled_at_{};
};

}  // namespace cachewarm::agent

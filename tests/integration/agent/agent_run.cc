// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/agent/agent_run.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "agent/steps/fetching/fetch_generation.h"
#include "agent/steps/scrubbing/scrub_tree.h"
#include "agent/sync/plan.h"
#include "agent/tree/durable.h"
#include "agent/tree/journal.h"
#include "agent/tree/links.h"
#include "agent/tree/root.h"
#include "agent/tree/scan.h"
#include "lib/base/status.h"
#include "lib/fs/tree.h"
#include "tests/unit/agent/fake_watcher.h"

namespace cachewarm::agent {
namespace {

class AgentRun {
 public:
  AgentRun(const fs::Dir& root, bundle::Store& store, const std::vector<Digest>& digests)
      : root_(root), store_(store) {
    api::WantedWarmup warmup{
        .uid = mount_.uid, .ns = mount_.ns, .name = mount_.name, .run_as = {mount_.run_as}};
    for (const Digest& digest : digests) {
      warmup.bundles.push_back({.key = "k", .digest = digest, .bytes = 1});
    }
    desired_.warmups = {warmup};
  }

  bool Run() {
    if (!SweepLeftovers(root_).ok() || !RepairJournal(root_, SystemClock().Now()).ok()) {
      return false;
    }
    for (const QuarantinedBundle& bundle : ReadQuarantinedBundles(root_)) {
      history_.bundles[bundle.name] = {.not_before = MonoTime::max(), .quarantined = true};
    }
    for (int pass = 0; pass < 10; ++pass) {
      const absl::StatusOr<Inventory> inventory = ScrubTrees();
      if (!inventory.ok()) {
        return false;
      }
      const Plan plan =
          MakePlan({.desired = desired_, .inventory = *inventory, .history = history_});
      if (plan.steps.empty()) {
        return MakeTreesDurable(*inventory);
      }
      if (!std::all_of(plan.steps.begin(), plan.steps.end(),
                       [&](const Step& step) { return Execute(step); })) {
        return false;
      }
    }
    return false;
  }

 private:
  // Scrubs the active trees. Returns the inventory afterwards.
  absl::StatusOr<Inventory> ScrubTrees() {
    CW_ASSIGN_OR_RETURN(const Inventory inventory, ScanInventory(root_));
    for (const auto& [mount, link] : inventory.links) {
      const auto tree = inventory.generations.find(link.generation);
      if (tree == inventory.generations.end() || tree->second.digests.empty() ||
          inventory.damaged.contains(link.generation)) {
        continue;
      }
      CW_ASSIGN_OR_RETURN(const Scrubbed scrubbed,
                          ScrubTree({.root = root_,
                                     .watcher = watcher_,
                                     .store = store_,
                                     .table = table_,
                                     .clock = SystemClock(),
                                     .generation = link.generation,
                                     .damaged = inventory.damaged,
                                     .pace = [](int64_t) { return absl::OkStatus(); }},
                                    {}));
      if (scrubbed.damage.has_value()) {
        CW_RETURN_IF_ERROR(WriteDamagedTree(root_, link.generation, *scrubbed.damage));
      }
    }
    return ScanInventory(root_);
  }

  bool MakeTreesDurable(const Inventory& inventory) {
    return std::all_of(inventory.generations.begin(), inventory.generations.end(),
                       [&](const auto& each) {
                         return each.second.digests.empty() || IsDurable(root_, each.first) ||
                                MakeDurable({.root = root_, .generation = each.first}, {}).ok();
                       });
  }

  bool Execute(const Step& step) {
    const PrepareOptions options{.folders = table_.Directories(), .now = SystemClock().Now()};
    if (const auto* prepare = std::get_if<Prepare>(&step)) {
      return PrepareMount(root_, prepare->mount, options).ok();
    }
    if (const auto* renew = std::get_if<Renew>(&step)) {
      return ActivateFreshTree(root_, renew->mount, options).ok();
    }
    if (const auto* activate = std::get_if<Activate>(&step)) {
      return ActivateGeneration(root_, activate->mount, activate->generation, options).ok();
    }
    if (const auto* discard = std::get_if<Discard>(&step)) {
      return fs::RemoveTree(root_, StagingPath(discard->staging)).ok();
    }
    return FetchBundle(std::get<Fetch>(step));
  }

  // Fetches a generation. Also returns true if the bundle is quarantined now.
  bool FetchBundle(const Fetch& step) {
    const auto outcome = FetchGeneration({.store = store_,
                                          .root = root_,
                                          .table = table_,
                                          .clock = SystemClock(),
                                          .step = step,
                                          .gpu_type = "cpu",
                                          .cpu_class = kTestCpuClass},
                                         {});
    const auto* fault = std::get_if<FetchFault>(&outcome);
    if (fault == nullptr) {
      return true;
    }
    const BundleName name{mount_.uid, fault->digest};
    FailureState& failure = history_.bundles[name];
    RecordFailure(failure, KindOfFault(fault->source, fault->status), fault->status, {});
    failure.not_before = MonoTime::max();
    return failure.quarantined &&
           WriteQuarantinedBundle(root_, {.name = name, .reason = failure.reason}).ok();
  }

  const Mount mount_ = TestMount();
  const fs::Dir& root_;
  bundle::Store& store_;
  const caches::CacheTable& table_ = caches::CacheTable::AllPresets();
  FakeWatcher watcher_;
  api::NodeCacheSpec desired_;
  History history_;
};

}  // namespace

Mount TestMount() {
  return {"team", "llama", "uid-1", "image"};
}

bool RunAgentOnce(const std::string& root_path, bundle::Store& store,
                  const std::vector<Digest>& digests) {
  const absl::StatusOr<fs::Dir> root = OpenRoot(root_path);
  return root.ok() && AgentRun(*root, store, digests).Run();
}

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "lib/api/json/limits.h"
#include "lib/api/reasons.h"

namespace cachewarm::agent {
namespace {

constexpr int64_t kSizeStep = 20;  // fetched bytes and disk sizes are reported in steps of 1/20

class Reporter {
 public:
  Reporter(const ReportInput& input, const api::WantedWarmup& wanted)
      : input_(input), wanted_(wanted) {
    for (const std::string& run_as : wanted.run_as) {
      mounts_.push_back({wanted.ns, wanted.name, wanted.uid, run_as});
    }
  }

  api::NodeWarmup Run() const {
    api::NodeWarmup warmup{.uid = wanted_.uid, .prepared = Prepared(), .message = Problem()};
    if (!mounts_.empty()) {
      if (const Link* link = FindLink(mounts_.front()); link != nullptr) {
        warmup.generation = link->generation;
      }
    }
    for (const api::WantedBundle& bundle : wanted_.bundles) {
      warmup.bundles.push_back(ReportBundle(bundle));
    }
    AddOtherActive(warmup.bundles);
    return warmup;
  }

 private:
  // Adds the bundles of the active tree that are no longer wanted. While a node fetches a bundle
  // that a harvest has extended, it still has the one before, also after spec.harvest was removed.
  void AddOtherActive(std::vector<api::NodeBundle>& bundles) const {
    const Link* link = mounts_.empty() ? nullptr : FindLink(mounts_.front());
    const auto tree = link == nullptr ? input_.inventory.generations.end()
                                      : input_.inventory.generations.find(link->generation);
    if (tree == input_.inventory.generations.end()) {
      return;
    }
    for (const Digest& digest : tree->second.digests) {
      const bool is_listed = std::any_of(bundles.begin(), bundles.end(),
                                         [&](const auto& each) { return each.digest == digest; });
      if (!is_listed && IsActive(digest) && bundles.size() < api::json::kNodeBundlesMax) {
        bundles.push_back(ReportBundle({.digest = digest}));
      }
    }
  }

  const Link* FindLink(const Mount& mount) const {
    const auto found = input_.inventory.links.find(mount);
    return found == input_.inventory.links.end() ? nullptr : &found->second;
  }

  std::vector<std::string> Prepared() const {
    std::vector<std::string> prepared;
    if (!input_.root.writable || !input_.root.executable) {
      return prepared;
    }
    for (const Mount& mount : mounts_) {
      const Link* link = FindLink(mount);
      if (link != nullptr && link->state == LinkState::kActive) {
        prepared.push_back(mount.run_as);
      }
    }
    return prepared;
  }

  std::string Problem() const {
    if (!input_.root.message.empty()) {
      return input_.root.message;
    }
    if (const auto found = input_.plan.invalid.find(wanted_.uid);
        found != input_.plan.invalid.end()) {
      return found->second;
    }
    for (const Mount& mount : mounts_) {
      const auto found = input_.mount_problems.find(mount);
      if (found != input_.mount_problems.end()) {
        return found->second;
      }
    }
    return {};
  }

  api::NodeBundle ReportBundle(const api::WantedBundle& wanted) const {
    api::NodeBundle bundle{.digest = wanted.digest};
    if (IsActive(wanted.digest)) {
      bundle.state = api::BundleState::kActive;
      bundle.reason = std::string(api::reason::kActive);
      bundle.bytes_done = wanted.bytes;
      bundle.fetch_seconds = FetchSeconds();
      bundle.message = Replaced(wanted.digest);
      return bundle;
    }
    if (const FailureState* failure = FindFailure(wanted.digest); failure != nullptr) {
      bundle.state = api::BundleState::kFailed;
      bundle.reason = failure->reason;
      bundle.message = failure->message;
    } else if (IsFetching(wanted.digest)) {
      bundle.state = api::BundleState::kFetching;
    }
    if (const auto done = input_.progress.find(wanted.digest); done != input_.progress.end()) {
      bundle.bytes_done = done->second.bytes;
      bundle.fetch_seconds = done->second.seconds;
    }
    return bundle;
  }

  // Describes the damaged trees of this bundle that the active tree replaces; empty if none.
  std::string Replaced(const Digest& digest) const {
    int count = 0;
    const DamagedTree* last = nullptr;
    for (const auto& each : input_.inventory.damaged) {
      const bool is_wanted = std::any_of(mounts_.begin(), mounts_.end(), [&](const Mount& mount) {
        return Holds(each.first, mount, digest);
      });
      if (is_wanted) {
        ++count;
        last = last == nullptr || last->at < each.second.at ? &each.second : last;
      }
    }
    return last == nullptr
               ? std::string()
               : fmt::format("replaces {} damaged tree{} (last detected {}: {})", count,
                             count == 1 ? "" : "s", FormatTime(last->at), DescribeDamage(*last));
  }

  bool IsActive(const Digest& digest) const {
    return !mounts_.empty() && std::all_of(mounts_.begin(), mounts_.end(), [&](const auto& mount) {
      const Link* link = FindLink(mount);
      return link != nullptr && !link->generation.empty() &&
             !input_.inventory.damaged.contains(link->generation) &&
             Holds(link->generation, mount, digest);
    });
  }

  // Returns true if the tree contains the bundle, according to the tree's record, or to its name if
  // the record was lost.
  bool Holds(const std::string& generation, const Mount& mount, const Digest& digest) const {
    const auto found = input_.inventory.generations.find(generation);
    if (found == input_.inventory.generations.end()) {
      return false;
    }
    const std::vector<Digest>& digests = found->second.digests;
    return std::find(digests.begin(), digests.end(), digest) != digests.end() ||
           generation ==
               SelectTree(input_.inventory, mount, DigestsOf(wanted_.bundles), wanted_.renew);
  }

  double FetchSeconds() const {
    double most = 0;
    for (const Mount& mount : mounts_) {
      if (const Link* link = FindLink(mount); link != nullptr) {
        const auto found = input_.inventory.generations.find(link->generation);
        most = found == input_.inventory.generations.end()
                   ? most
                   : std::max(most, found->second.fetch_seconds);
      }
    }
    return most;
  }

  // Returns the failure to report for the bundle: that of the bundle itself, else the reason why
  // the plan does not fetch it, else the failure of the generation that would contain it. Returns
  // null if there is none.
  const FailureState* FindFailure(const Digest& digest) const {
    const BundleName name{wanted_.uid, digest};
    if (const auto own = input_.history.bundles.find(name); own != input_.history.bundles.end()) {
      return &own->second;
    }
    if (const auto full = input_.plan.refused.find(name); full != input_.plan.refused.end()) {
      return &full->second;
    }
    for (const Mount& mount : mounts_) {
      const auto tree = WantedTree(mount);
      const auto found = tree.has_value() ? input_.history.generations.find(*tree)
                                          : input_.history.generations.end();
      if (found != input_.history.generations.end()) {
        return &found->second;
      }
    }
    return nullptr;
  }

  std::optional<std::string> WantedTree(const Mount& mount) const {
    return SelectTree(input_.inventory, mount, EligibleDigests(), wanted_.renew);
  }

  std::vector<Digest> EligibleDigests() const {
    std::vector<Digest> digests;
    for (const api::WantedBundle& bundle : wanted_.bundles) {
      if (!input_.history.bundles.contains({wanted_.uid, bundle.digest})) {
        digests.push_back(bundle.digest);
      }
    }
    return digests;
  }

  bool IsFetching(const Digest& digest) const {
    return input_.progress.contains(digest) ||
           std::any_of(mounts_.begin(), mounts_.end(), [&](const auto& mount) {
             const auto tree = WantedTree(mount);
             return tree.has_value() && input_.history.fetching.contains(*tree);
           });
  }

  const ReportInput& input_;
  const api::WantedWarmup& wanted_;
  std::vector<Mount> mounts_;
};

bool IsClose(int64_t before, int64_t after) {
  return std::abs(before - after) <= std::max(before, after) / kSizeStep;
}

}  // namespace

int64_t ReportedBytes(int64_t done, int64_t wanted) {
  const int64_t step = std::max<int64_t>(wanted / kSizeStep, 1);
  return done / step * step;
}

std::vector<api::NodeWarmup> ReportWarmups(const ReportInput& input) {
  std::vector<api::NodeWarmup> warmups;
  for (const api::WantedWarmup& wanted : input.desired.warmups) {
    warmups.push_back(Reporter(input, wanted).Run());
  }
  return warmups;
}

bool HasStatusChanged(const api::NodeCacheStatus& before, const api::NodeCacheStatus& after) {
  if (!IsClose(before.node.root.used_bytes, after.node.root.used_bytes) ||
      !IsClose(before.node.root.free_bytes, after.node.root.free_bytes) ||
      !IsClose(before.node.root.evictable_bytes, after.node.root.evictable_bytes)) {
    return true;
  }
  api::NodeCacheStatus same = after;
  same.heartbeat = before.heartbeat;
  same.node.root.used_bytes = before.node.root.used_bytes;
  same.node.root.free_bytes = before.node.root.free_bytes;
  same.node.root.evictable_bytes = before.node.root.evictable_bytes;
  return !(same == before);
}

}  // namespace cachewarm::agent

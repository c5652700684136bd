// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/fakes/snapshot_builder.h"

// A cluster around operator/plan, one second at a time: a workload's controller, a scheduler,
// kubelets, agents, a store, an autoscaler and a quota, all much simplified, and operators that may
// die between any two steps of an apply or act on what they saw a second ago. One of two leads; the
// other, and a CronJob, let go of held pods. The seed decides everything. What must hold is checked
// after every second.
namespace cachewarm::sim {

using fakes::NodeSetup;
using fakes::PodSetup;
using fakes::SnapshotBuilder;

// Seconds in which nobody plans after the leader was killed: its Lease goes on for 15 s, and the
// other operator asks for it every 2.4 s at the latest.
inline constexpr int kFailoverSeconds = 18;

// How the pods of the workload come and go.
enum class Strategy {
  kRolling,   // maxSurge 1, maxUnavailable 0
  kRecreate,  // all old ones go first
  kInOrder,   // the next one when all others are ready
  kJob,       // with a deadline
  kGroup,     // as kRolling, all of one gang
};

struct SimSetup {
  uint32_t seed = 1;
  int replicas = 0;
  int cold_seconds = 9;
  int warm_seconds = 3;
  int fetch_seconds = 2;
  double operator_crash_chance = 0;  // chance that the leader dies at a step of its apply
  double stale_plan_chance = 0;      // chance that a second's plan is from what was a second ago
  double preference_chance = 1;      // chance that the scheduler heeds a preference
  api::GateMode mode = api::GateMode::kHold;
  Strategy strategy = Strategy::kRolling;
  int pods_per_second = 1;           // that the workload's controller makes
  int autoscaler_nodes = 0;          // that may be added for pods that find no room
  bool fresh_nodes_tainted = false;  // the setting, and what node pools do
  int progress_deadline = 0;         // seconds that the workload gives a rollout; 0: any
  int unavailable_max = 0;           // pods that a rolling workload itself may be short of
  int budget = 0;                    // pods that a PodDisruptionBudget asks for
  int quota = 0;                     // pods that the namespace may have; 0: any
  int devices = 0;                   // that each pod asks for
};

class SimCluster {
 public:
  explicit SimCluster(const SimSetup& setup);

  void AddNode(const NodeSetup& node);
  void RemoveNode(const std::string& name);
  void Scale(int replicas) { replicas_ = replicas; }
  void Rollout(const std::string& revision, const std::string& image);
  void Kill(const std::string& pod);  // the workload makes another
  void KillOne();                     // any running pod
  void KillInjected();                // all that have our directory
  // Containers of this image end before they are ready wherever they have our directory.
  void CrashWhenInjected(const std::string& image) { crashing_image_ = image; }
  void StoreDown(bool down) { store_down_ = down; }
  void OperatorDown(bool down);  // both operators
  void KillLeader() { leaderless_until_ = now_ + kFailoverSeconds; }
  void SetOperatorCrashChance(double chance) { setup_.operator_crash_chance = chance; }
  // A pod that the admission policy was too late for.
  void AddUninjectedPod(const std::string& name);

  void RunSecond();
  void RunSeconds(int count);
  // True once plans have wanted nothing for longer than a compile takes; within `limit` seconds.
  bool Settle(int limit);
  // The second at which all replicas of the current revision, and no others, are ready; nothing
  // when that takes more than `limit` seconds.
  std::optional<int> UntilReady(int limit);

  // What went wrong so far; empty when nothing did.
  const std::vector<std::string>& violations() const { return violations_; }

  SnapshotBuilder& builder() { return builder_; }
  const api::WarmupStatus& status() { return builder_.status(); }
  int now() const { return now_; }
  size_t pods_ready() const;  // of the workload
  size_t pods_held() const;
  size_t pods_injected() const;                       // of the workload
  int longest_hold() const { return longest_hold_; }  // seconds, of any pod
  int elections(const std::string& key) const;
  int hits_after(int second) const;
  int misses_after(int second) const;
  size_t starts_ended() const { return ended_.size(); }
  size_t nodes() const { return nodes_.size(); }

 private:
  struct SimPod {
    PodSetup setup;
    bool warm = false;
    int gated_at = 0;
    int unschedulable_since = 0;  // 0: it is not
    std::vector<std::string> preferred;
    std::vector<std::string> excluded;
  };

  // workload.cc
  void RunWorkload();
  bool MakePod();
  bool HasQuota() const;
  void RemoveSurplus(int current, int old, bool starting);
  void RunAutoscaler();
  void Schedule();
  void SchedulePod(SimPod& pod);
  void RunKubelets();
  void RunKubelet(SimPod& pod);
  void Start(SimPod& pod);
  // jobs.cc
  void RunJobs();
  void CheckJobs();
  // world.cc
  void RunAgents();
  void RunAgent(const std::string& node);
  void RunFetches(const std::string& node, const api::WantedWarmup& wanted);
  void RunOperator();
  void RunTaints();
  bool Apply(const plan::Plan& plan);
  bool ApplyJobs(const plan::Plan& plan);
  bool ApplyReleases(const plan::Plan& plan);
  void Publish();
  void Check();
  // held.cc
  void RunStandby();
  void RunCronJob();
  void Release(SimPod& pod);
  void CheckHeld();
  bool IsCalm() const;
  // world.cc
  void CheckFetchSlots();
  void Violate(const std::string& what);
  int FreeSlots(const std::string& node) const;
  int FreeDevices(const std::string& node) const;
  bool Chance(double chance);
  bool Crashes();

  SimSetup setup_;
  std::mt19937 random_;
  SnapshotBuilder builder_;
  int now_ = 100;
  int replicas_ = 0;
  std::string revision_ = "r1";
  std::string image_ = "server:1";
  std::string crashing_image_;
  bool store_down_ = false;
  bool operator_down_ = false;
  int alive_since_ = 0;       // an operator, whether it leads or not
  int leaderless_until_ = 0;  // a second
  int next_pod_ = 0;
  int idle_seconds_ = 0;
  int longest_hold_ = 0;
  int added_nodes_ = 0;
  int64_t version_ = 0;  // of the status
  std::optional<plan::Plan> earlier_plan_;
  int64_t earlier_version_ = 0;
  std::map<std::string, NodeSetup> nodes_;
  std::map<std::string, SimPod> pods_;
  std::map<std::string, std::vector<std::string>> jobs_;  // name → nodes that its pod may have
  int over_quota_since_ = 0;               // a pod of the workload could not be made; 0: all could
  std::map<std::string, int> pushed_at_;   // capture id → second
  std::map<std::string, int> fetched_at_;  // node/digest → second
  std::map<std::string, std::string> class_of_digest_;    // digest → CPU class
  std::map<std::string, std::set<std::string>> elected_;  // key → pod uids
  std::set<std::string> ended_;                           // uids whose first start ended
  std::vector<std::pair<int, api::StartResult>> results_;
  std::vector<std::string> violations_;
};

}  // namespace cachewarm::sim

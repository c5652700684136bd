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

// Simulates a cluster around operator/plan, one second at a time: a workload controller, a
// scheduler, kubelets, agents, a store, an autoscaler and a quota, all simplified, and operators
// that may crash between any two steps of an apply or act on a plan that is a second old. One of
// two operators leads; the other, and a CronJob, release held pods. The seed decides everything.
// Invariants are checked every second.
namespace cachewarm::sim {

using fakes::NodeSetup;
using fakes::PodSetup;
using fakes::SnapshotBuilder;

// Seconds without a leader after it was killed: its Lease lasts 15 s, and the other operator
// retries at least every 2.4 s.
inline constexpr int kFailoverSeconds = 18;

// How the workload creates and deletes its pods.
enum class Strategy {
  kRolling,   // maxSurge 1, maxUnavailable 0
  kRecreate,  // deletes all old pods first
  kInOrder,   // creates the next pod when all others are ready
  kJob,       // has a deadline
  kGroup,     // like kRolling, all pods in one gang
};

struct SimSetup {
  uint32_t seed = 1;
  int replicas = 0;
  int cold_seconds = 9;
  int warm_seconds = 3;
  int fetch_seconds = 2;
  double operator_crash_chance = 0;  // chance that the leader crashes at a step of its apply
  double stale_plan_chance = 0;      // chance that a second applies the previous second's plan
  double preference_chance = 1;      // chance that the scheduler follows a preference
  api::GateMode mode = api::GateMode::kHold;
  Strategy strategy = Strategy::kRolling;
  int pods_per_second = 1;           // created by the workload controller
  int autoscaler_nodes = 0;          // limit of added nodes
  bool fresh_nodes_tainted = false;  // the setting; new nodes get the startup taint
  int progress_deadline = 0;         // in seconds; 0: none
  int unavailable_max = 0;           // maxUnavailable of a rolling workload
  int budget = 0;                    // minAvailable of a PodDisruptionBudget
  int quota = 0;                     // pods allowed in the namespace; 0: unlimited
  int devices = 0;                   // requested by each pod
  std::string mirror;                // admission puts it before the image of every new pod
};

class SimCluster {
 public:
  explicit SimCluster(const SimSetup& setup);

  void AddNode(const NodeSetup& node);
  void RemoveNode(const std::string& name);
  void Scale(int replicas) { replicas_ = replicas; }
  void Rollout(const std::string& revision, const std::string& image);
  void Kill(const std::string& pod);  // the workload creates a replacement
  void KillOne();                     // any running pod
  void KillInjected();                // all injected pods
  // Makes injected containers of this image crash before they are ready.
  void CrashWhenInjected(const std::string& image) { crashing_image_ = image; }
  // Injected containers never become ready on a node that has one of the next `count` bundles.
  void HangWithNextBundles(int count) { hanging_left_ = count; }
  void KillUnready();  // all pods that are not ready
  void StoreDown(bool down) { store_down_ = down; }
  void BreakFetches(const std::string& node) { broken_.insert(node); }
  void OperatorDown(bool down);  // both operators
  void KillLeader() { leaderless_until_ = now_ + kFailoverSeconds; }
  void SetOperatorCrashChance(double chance) { setup_.operator_crash_chance = chance; }
  // Adds a pod that was created before the admission policy applied.
  void AddUninjectedPod(const std::string& name);

  void RunSecond();
  void RunSeconds(int count);
  // Time passes in which nothing runs, for a long wait of a settled cluster.
  void PassSeconds(int count) { now_ += count; }
  // Runs until plans are empty for longer than a compile takes; false if that needs more than
  // `limit` seconds.
  bool Settle(int limit);
  // Runs until exactly the replicas of the current revision are ready and returns that second;
  // nullopt after `limit` seconds.
  std::optional<int> UntilReady(int limit);

  // Violated invariants so far.
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
  int misses_after(int second) const;  // of any kind, cold starts too
  int counted(api::StartResult result) const;
  size_t starts_ended() const { return ended_.size(); }
  size_t gated_ever() const { return gated_ever_; }  // pods created with the gate
  size_t nodes() const { return nodes_.size(); }

 private:
  struct SimPod {
    PodSetup setup;
    bool warm = false;
    bool hangs = false;
    int gated_at = 0;
    int held_seconds = 0;         // once released
    int unschedulable_since = 0;  // 0: schedulable
    std::vector<std::string> preferred;
    std::vector<std::string> excluded;
  };

  std::string RunningImage() const { return setup_.mirror + image_; }

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
  // sim_cluster.cc
  void RunAgents();
  void RunAgent(const std::string& node);
  void RunFetches(const std::string& node, const api::WantedWarmup& wanted);
  void RunOperator();
  void RunTaints();
  bool Apply(const model::Plan& plan);
  bool ApplyJobs(const model::Plan& plan);
  bool ApplyReleases(const model::Plan& plan);
  void Publish();
  void Check();
  // held_pods.cc
  void RunStandby();
  void RunCronJob();
  void Release(SimPod& pod);
  void CheckHeld();
  double HoldMax();
  double BudgetEnd(const SimPod& pod);
  static WallTime NotedEnd(const SimPod& pod);
  bool IsCalm() const;
  // sim_cluster.cc
  void CheckFetchSlots();
  void CheckProven();
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
  int hanging_left_ = 0;  // bundles still to be published that hang
  std::set<std::string> hanging_digests_;
  bool store_down_ = false;
  std::set<std::string> broken_;  // nodes on which every fetch fails
  bool operator_down_ = false;
  int alive_since_ = 0;       // of any operator
  int leaderless_until_ = 0;  // a second
  int next_pod_ = 0;
  int idle_seconds_ = 0;
  int longest_hold_ = 0;
  size_t gated_ever_ = 0;
  int added_nodes_ = 0;
  int64_t version_ = 0;  // of the status
  std::optional<model::Plan> earlier_plan_;
  int64_t earlier_version_ = 0;
  std::map<std::string, NodeSetup> nodes_;
  std::map<std::string, SimPod> pods_;
  std::map<std::string, std::vector<std::string>> jobs_;  // name → nodes allowed for its pod
  int over_quota_since_ = 0;               // second since which the quota rejects a pod; 0: none
  std::map<std::string, int> pushed_at_;   // capture id → second
  std::map<std::string, int> fetched_at_;  // node/digest → second
  std::map<std::string, std::string> class_of_digest_;    // digest → CPU class
  std::map<std::string, std::string> node_of_digest_;     // digest → node that captured it
  std::set<std::string> published_;                       // digests that were in status.bundles
  std::map<std::string, std::set<std::string>> elected_;  // key → pod uids
  std::set<std::string> ended_;                           // uids whose first start ended
  std::vector<std::pair<int, api::StartResult>> results_;
  std::vector<std::string> violations_;
};

}  // namespace cachewarm::sim

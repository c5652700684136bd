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

// A cluster around operator/plan, one second at a time: a Deployment controller, a scheduler,
// kubelets, agents and a store, all much simplified, and an operator that may die between any two
// steps of an apply. The seed decides everything. What must hold is checked after every second.
namespace cachewarm::fakes {

struct WorldSetup {
  uint32_t seed = 1;
  int replicas = 0;
  int cold_seconds = 9;
  int warm_seconds = 3;
  double operator_dies = 0;    // chance that a second's apply stops somewhere
  double preference_kept = 1;  // chance that the scheduler heeds a preference
};

class PlanWorld {
 public:
  explicit PlanWorld(const WorldSetup& setup);

  void AddNode(const NodeSetup& node);
  void RemoveNode(const std::string& name);
  void Scale(int replicas) { replicas_ = replicas; }
  void Rollout(const std::string& revision, const std::string& image);
  void Kill(const std::string& pod);  // the Deployment makes another
  void KillOne();                     // any running pod
  void StoreDown(bool down) { store_down_ = down; }
  void OperatorDown(bool down) { operator_down_ = down; }
  void SetOperatorDies(double chance) { setup_.operator_dies = chance; }

  void Second();
  void Seconds(int count);
  // True once plans have wanted nothing for longer than a compile takes; within `limit` seconds.
  bool Settle(int limit);

  // What went wrong so far; empty when nothing did.
  const std::vector<std::string>& violations() const { return violations_; }

  SnapshotBuilder& builder() { return builder_; }
  const api::WarmupStatus& status() { return builder_.status(); }
  int now() const { return now_; }
  size_t pods_ready() const;
  size_t pods_held() const;
  int elections(const std::string& key) const;
  int hits_after(int second) const;
  int misses_after(int second) const;
  size_t starts_ended() const { return ended_.size(); }

 private:
  struct SimPod {
    PodSetup setup;
    bool warm = false;
    int gated_at = 0;
    std::vector<std::string> preferred;
    std::vector<std::string> excluded;
  };

  void RunDeployment();
  void Schedule();
  void RunKubelets();
  void RunAgents();
  void RunAgent(const std::string& node);
  void RunOperator();
  bool Apply(const plan::Plan& plan);
  void Publish();
  void Check();
  void Violate(const std::string& what);
  int FreeSlots(const std::string& node) const;
  bool Dies();

  WorldSetup setup_;
  std::mt19937 random_;
  SnapshotBuilder builder_;
  int now_ = 100;
  int replicas_ = 0;
  std::string revision_ = "r1";
  std::string image_ = "server:1";
  bool store_down_ = false;
  bool operator_down_ = false;
  int next_pod_ = 0;
  int quiet_ = 0;
  std::map<std::string, NodeSetup> nodes_;
  std::map<std::string, SimPod> pods_;
  std::map<std::string, int> pushed_at_;                  // capture id → second
  std::map<std::string, int> fetched_at_;                 // node/digest → second
  std::map<std::string, std::string> class_of_digest_;    // digest → CPU class
  std::map<std::string, std::set<std::string>> elected_;  // key → pod uids
  std::set<std::string> ended_;  // uids whose first start ended on an injected pod
  std::vector<std::pair<int, api::StartResult>> results_;
  std::vector<std::string> violations_;
};

}  // namespace cachewarm::fakes

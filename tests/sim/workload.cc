// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "operator/plan/scheduling/pod_shape.h"
#include "tests/sim/sim_cluster.h"

// Simulated Kubernetes controllers for the pods of the workload.
namespace cachewarm::sim {

namespace {

constexpr int kAutoscalerDelay = 3;  // seconds that a pod must be unschedulable
constexpr int kAddedSlots = 4;
constexpr int kCrashes = 2;  // seconds after its start

bool Contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

void SimCluster::Kill(const std::string& pod) {
  pods_.erase(pod);
}

void SimCluster::KillOne() {
  if (!pods_.empty()) {
    pods_.erase(std::next(pods_.begin(), static_cast<ptrdiff_t>(random_() % pods_.size())));
  }
}

void SimCluster::KillInjected() {
  std::erase_if(pods_, [](const auto& pod) { return pod.second.setup.injected; });
}

void SimCluster::KillUnready() {
  std::erase_if(pods_, [](const auto& pod) { return !pod.second.setup.ready; });
}

bool SimCluster::HasQuota() const {
  return setup_.quota == 0 || pods_.size() < static_cast<size_t>(setup_.quota);
}

// False if the quota is exceeded.
bool SimCluster::MakePod() {
  if (!HasQuota()) {
    over_quota_since_ = over_quota_since_ == 0 ? now_ : over_quota_since_;
    return false;
  }
  over_quota_since_ = 0;
  const api::WarmupStatus& status = builder_.status();
  const bool injects = status.injection && builder_.warmup().labels.contains("cachewarm.io/inject");
  SimPod pod{.setup = {.name = "p" + std::to_string(1000 + next_pod_++),
                       .injected = injects,
                       .revision = revision_,
                       .image = RunningImage(),
                       .gpus = setup_.devices,
                       .created = now_}};
  pod.setup.held =
      injects && status.injection->gate && !Contains(status.injection->warm_revisions, revision_);
  if (setup_.strategy == Strategy::kGroup) {
    pod.setup.labels = {{"scheduling.x-k8s.io/pod-group", revision_}};
  }
  pod.gated_at = now_;
  gated_ever_ += pod.setup.held ? 1 : 0;
  pods_[pod.setup.name] = pod;
  return true;
}

void SimCluster::RemoveSurplus(int current, int old, bool starting) {
  for (auto pod = pods_.begin(); pod != pods_.end(); ++pod) {
    const bool surplus_old = pod->second.setup.revision != revision_ && !starting;
    const bool surplus = current + old > replicas_ && (old > 0 ? surplus_old : true);
    if (pod->second.setup.job.empty() && surplus) {
      pods_.erase(pod);
      return;
    }
  }
}

// A surplus pod of the old revision is deleted when a new one is ready: maxSurge 1.
void SimCluster::RunWorkload() {
  if (setup_.strategy == Strategy::kRecreate) {
    std::erase_if(pods_, [&](const auto& pod) {
      return pod.second.setup.job.empty() && pod.second.setup.revision != revision_;
    });
  }
  int current = 0;
  int old = 0;
  bool starting = false;
  bool all_ready = true;
  for (const auto& [name, pod] : pods_) {
    if (pod.setup.job.empty()) {
      (pod.setup.revision == revision_ ? current : old) += 1;
      starting = starting || (pod.setup.revision == revision_ && !pod.setup.ready);
      all_ready = all_ready && pod.setup.ready;
    }
  }
  const bool surges = old > 0 && (starting || current + old > replicas_);
  const bool waits = surges || (setup_.strategy == Strategy::kInOrder && !all_ready);
  if (current >= replicas_ || waits) {
    over_quota_since_ = 0;
    RemoveSurplus(current, old, starting);
    return;
  }
  const bool one = old > 0 || setup_.strategy == Strategy::kInOrder;
  const int most = one ? 1 : setup_.pods_per_second;
  int lacking = std::min(most, replicas_ - current);
  while (lacking > 0 && MakePod()) {
    --lacking;
  }
}

// Adds one node per second while a pod has been unschedulable for kAutoscalerDelay. Gated pods are
// ignored.
void SimCluster::RunAutoscaler() {
  const bool wanted = std::any_of(pods_.begin(), pods_.end(), [&](const auto& pod) {
    const int since = pod.second.unschedulable_since;
    return since > 0 && now_ - since >= kAutoscalerDelay;
  });
  if (wanted && added_nodes_ < setup_.autoscaler_nodes) {
    AddNode({.name = "added" + std::to_string(added_nodes_++), .pods = kAddedSlots});
  }
}

void SimCluster::Schedule() {
  for (auto& entry : pods_) {
    if (!entry.second.setup.held && entry.second.setup.node.empty()) {
      SchedulePod(entry.second);
    }
  }
}

void SimCluster::SchedulePod(SimPod& pod) {
  std::vector<std::string> open;
  for (const auto& [node, setup] : nodes_) {
    const bool wrong_class = !pod.setup.job.empty() && !Contains(pod.preferred, node);
    // Pods are kept off a node until its agent has prepared it, except while no operator runs.
    const bool prepared = operator_down_ || !builder_.reported(node).prepared.empty();
    const bool open_to_us = prepared && !plan::HasStartupTaint(builder_.node(node));
    const bool has_capacity = FreeSlots(node) > 0 && FreeDevices(node) >= pod.setup.gpus;
    if (has_capacity && open_to_us && !Contains(pod.excluded, node) && !wrong_class) {
      open.push_back(node);
    }
  }
  std::vector<std::string> liked;
  std::copy_if(open.begin(), open.end(), std::back_inserter(liked),
               [&](const std::string& node) { return Contains(pod.preferred, node); });
  // Preferences are not guaranteed to be followed.
  const bool obeys = Chance(setup_.preference_chance) || !pod.setup.job.empty();
  const auto& from = liked.empty() || !obeys ? open : liked;
  if (!from.empty()) {
    pod.setup.node = from[random_() % from.size()];
    pod.unschedulable_since = 0;
  } else if (pod.unschedulable_since == 0) {
    pod.unschedulable_since = now_;
  }
}

void SimCluster::RunKubelets() {
  for (auto& [name, pod] : pods_) {
    if (!pod.setup.node.empty() && !pod.setup.ready) {
      RunKubelet(pod);
    }
  }
}

void SimCluster::Start(SimPod& pod) {
  pod.setup.started = now_;
  const std::string key = builder_.Key(pod.setup.node, pod.setup.image);
  for (const auto& have : builder_.reported(pod.setup.node).bundles) {
    pod.hangs = pod.hangs || (pod.setup.injected && have.state == api::BundleState::kActive &&
                              hanging_digests_.contains(have.digest.ToString()));
  }
  for (const api::BundleStatus& bundle : builder_.status().bundles) {
    for (const auto& have : builder_.reported(pod.setup.node).bundles) {
      pod.warm =
          pod.warm || (pod.setup.injected && bundle.key == key && have.digest == bundle.digest &&
                       have.state == api::BundleState::kActive);
    }
  }
}

void SimCluster::RunKubelet(SimPod& pod) {
  if (!pod.setup.started) {
    Start(pod);
    return;
  }
  const int age = now_ - *pod.setup.started;
  if (pod.setup.injected && pod.setup.image == crashing_image_) {
    if (age >= kCrashes) {
      ++pod.setup.restarts;
      pod.setup.started = now_;
    }
  } else if (!pod.hangs && age >= (pod.warm ? setup_.warm_seconds : setup_.cold_seconds)) {
    pod.setup.ready = now_;
    ended_.insert("uid-" + pod.setup.name);
  }
}

}  // namespace cachewarm::sim

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/sim/sim_cluster.h"

// Kubernetes Jobs, and the resources that builder Jobs must leave to the workload. The simulated
// scheduler does not preempt, as for pods whose priority class forbids it.
namespace cachewarm::sim {

namespace {

constexpr int kBuilderYieldSeconds = 5;  // seconds

}  // namespace

void SimCluster::RunJobs() {
  for (const auto& [name, nodes] : jobs_) {
    if (!pods_.contains(name + "-pod") && HasQuota()) {
      SimPod pod{.setup = {.name = name + "-pod",
                           .image = RunningImage(),
                           .gpus = setup_.devices,
                           .created = now_,
                           .job = name}};
      pod.preferred = nodes;
      pods_[pod.setup.name] = pod;
    }
  }
}

// Checks that no pod of the workload waits for resources of a builder.
void SimCluster::CheckJobs() {
  const bool compiles = std::any_of(pods_.begin(), pods_.end(), [](const auto& pod) {
    return !pod.second.setup.job.empty() && !pod.second.setup.node.empty();
  });
  if (!compiles || !IsCalm()) {
    return;
  }
  if (over_quota_since_ > 0 && now_ - over_quota_since_ > kBuilderYieldSeconds) {
    Violate("a builder has the place in the quota that a pod needs");
  }
  for (const auto& [name, pod] : pods_) {
    const int since = pod.unschedulable_since;
    if (pod.setup.job.empty() && since > 0 && now_ - since > kBuilderYieldSeconds) {
      Violate("a builder has the room that pod " + name + " needs");
    }
  }
}

}  // namespace cachewarm::sim

// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/building/job_room.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/api/gate/release.h"
#include "lib/codec/json_value.h"
#include "operator/plan/decisions.h"
#include "operator/plan/scheduling/requests.h"
#include "operator/render/fields.h"
#include "operator/render/job.h"

namespace cachewarm::plan {

namespace {

// A pod that no node has after this long was looked at by the scheduler.
constexpr Duration kSchedulersTurn = std::chrono::seconds(2);
// A pod that has not started after this long may wait for a volume.
constexpr Duration kVolumesTurn = std::chrono::seconds(15);

std::vector<size_t> NodesFor(const Round& round, const LiveKey& key) {
  std::vector<size_t> out;
  for (const size_t index : round.targets[key.target].nodes) {
    const NodeState& node = round.nodes[index];
    if (node.possible && node.ready && node.prepared) {
      out.push_back(index);
    }
  }
  return out;
}

bool IsOfTheUsers(const PodView& pod) {
  return !pod.of_job && !pod.finished && !pod.pod->meta.deleting;
}

// Pods of the workload that no node has yet, and those that it is about to make.
int64_t PodsWithoutANode(const Round& round) {
  int64_t bound = 0;
  int64_t unbound = 0;
  for (const PodView& pod : round.pods) {
    if (IsOfTheUsers(pod)) {
      ++(pod.pod->node.empty() ? unbound : bound);
    }
  }
  return std::max(unbound, round.in.promises.pods_most - bound);
}

// Books room for so many pods of the workload on nodes of this target, or on all others; returns
// how many found none.
int64_t Book(Round& round, int64_t pods, size_t target, bool others) {
  const PodShape& shape = round.pod_template.shape;
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    const NodeState& node = round.nodes[i];
    const bool is_meant = (node.target != static_cast<int>(target)) == others && node.possible;
    for (; is_meant && pods > 0 && CanTake(round, i, shape); --pods) {
      Take(round, i, shape);
    }
  }
  return pods;
}

// Room on the Job's own node is all that one pod of the workload needs to start.
bool IsInTheWay(const Round& round, const PodView& job_pod) {
  const PodShape& shape = round.pod_template.shape;
  for (size_t i = 0; i < round.nodes.size(); ++i) {
    if (round.nodes[i].possible && CanTake(round, i, shape)) {
      return false;
    }
  }
  const NodeState& node = round.nodes[static_cast<size_t>(job_pod.node)];
  Resources room = node.view->free;
  for (const auto& [name, amount] : job_pod.pod->requests) {
    room[name] += amount;
  }
  ++room["pods"];
  return node.possible && Holds(room, shape.requests);
}

// A pod of the workload that the scheduler looked at and has no room for; nullptr for none. Most
// take it by preemption; those whose class forbids that would wait.
const PodView* PodWithoutRoom(Round& round) {
  for (const PodView& pod : round.pods) {
    if (IsOfTheUsers(pod) && pod.pod->node.empty() && pod.pod->gates.empty()) {
      const WallTime looked_at = pod.pod->meta.created + kSchedulersTurn;
      if (round.in.now >= looked_at) {
        return &pod;
      }
      WakeAt(round, looked_at);
    }
  }
  return nullptr;
}

}  // namespace

const PodView* PodOfJob(const Round& round, const std::string& job) {
  for (const PodView& pod : round.pods) {
    const auto& labels = pod.pod->meta.labels;
    auto name = labels.find("batch.kubernetes.io/job-name");
    name = name == labels.end() ? labels.find("job-name") : name;
    if (pod.of_job && name != labels.end() && name->second == job) {
      return &pod;
    }
  }
  return nullptr;
}

bool MayNeverBegin(const Round& round, const api::BuilderStatus& builder) {
  if (builder.job.empty() || !builder.node.empty() ||
      round.in.now < builder.elected_time + kJobsTurn) {
    return false;
  }
  const PodView* pod = PodOfJob(round, builder.job);
  return pod == nullptr || pod->node < 0;
}

absl::StatusOr<codec::Json> TemplateOfJob(const Round& round) {
  return render::WithOverrides(*round.pod_template.pod_template,
                               round.in.warmup.spec.compile.overrides.get(),
                               round.pod_template.factors.container);
}

PodShape ShapeOfJob(const Round& round) {
  const auto pod_template = TemplateOfJob(round);
  const codec::Json* spec = pod_template.ok() ? render::Find(*pod_template, {"spec"}) : nullptr;
  return spec == nullptr ? round.pod_template.shape : ShapeOf(*spec);
}

JobNodes NodesByRoom(Round& round, const LiveKey& key) {
  const PodShape shape = ShapeOfJob(round);
  const auto taken = round.taken;
  Book(round, Book(round, PodsWithoutANode(round), key.target, true), key.target, false);
  JobNodes out{.nodes = NodesFor(round, key)};
  const auto full = std::stable_partition(out.nodes.begin(), out.nodes.end(),
                                          [&](size_t node) { return CanTake(round, node, shape); });
  out.has_room = full != out.nodes.begin();
  round.taken = taken;
  return out;
}

const PodView* PodThatMayLackAClaim(Round& round, Duration patience, int job_node) {
  const auto& pod_template = round.pod_template.pod_template;
  if (pod_template == nullptr || !render::SharesAClaim(*pod_template)) {
    return nullptr;
  }
  for (const PodView& pod : round.pods) {
    if (!IsOfTheUsers(pod) || !pod.pod->gates.empty() || HasStarted(pod) ||
        (pod.node >= 0 && pod.node == job_node)) {
      continue;
    }
    const std::chrono::duration<double> held(api::gate::NotedHoldSeconds(*pod.pod));
    const WallTime due =
        pod.pod->meta.created + std::chrono::duration_cast<Duration>(held) + patience;
    if (round.in.now >= due) {
      return &pod;
    }
    WakeAt(round, due);
  }
  return nullptr;
}

std::string WhyGiveWay(Round& round, const PodView* job_pod) {
  if (round.in.promises.quota_exceeded) {
    return "a pod of the workload could not be made within the quota of the namespace";
  }
  if (job_pod == nullptr || job_pod->node < 0) {
    return "";
  }
  if (const PodView* pod = PodThatMayLackAClaim(round, kVolumesTurn, job_pod->node)) {
    return fmt::format(
        "pod {} of the workload has not started and may wait for a claim that both mount",
        pod->pod->meta.name);
  }
  if (!IsInTheWay(round, *job_pod)) {
    return "";
  }
  const PodView* pod = PodWithoutRoom(round);
  return pod == nullptr
             ? ""
             : fmt::format("pod {} of the workload finds no other room", pod->pod->meta.name);
}

}  // namespace cachewarm::plan

// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/job_capacity.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/held.h"
#include "operator/model/resource_requests.h"
#include "operator/plan/builders/override_rights.h"
#include "operator/plan/builders/pod_copy.h"
#include "operator/render/apply_overrides.h"

namespace cachewarm::plan {

namespace {

// The scheduler has tried at least once to place an unbound pod of this age.
constexpr Duration kSchedulingGrace = std::chrono::seconds(2);
// A pod of this age that has not started may be waiting for a volume.
constexpr Duration kVolumeGrace = std::chrono::seconds(15);

std::vector<size_t> NodesFor(const Context& context, const LiveKey& key) {
  std::vector<size_t> out;
  for (const size_t index : context.targets[key.target].nodes) {
    const NodeState& node = context.nodes[index];
    if (node.possible && node.ready && node.prepared) {
      out.push_back(index);
    }
  }
  return out;
}

bool IsWorkloadPod(const PodView& pod) {
  return !pod.of_job && !pod.finished && !pod.pod->meta.deleting;
}

// Returns how many pods of the workload are unbound or about to be created.
int64_t CountUnboundPods(const Context& context) {
  int64_t bound = 0;
  int64_t unbound = 0;
  for (const PodView& pod : context.pods) {
    if (IsWorkloadPod(pod)) {
      ++(pod.pod->node.empty() ? unbound : bound);
    }
  }
  return std::max(unbound, context.in.constraints.pods_most - bound);
}

// Reserves capacity for `pods` pods of the workload on nodes of the target, or, if `others` is set,
// on all other nodes. Returns how many pods did not fit.
int64_t ReserveForPods(const Context& context, int64_t pods, size_t target, bool others,
                       Reserved& reserved) {
  const PodShape& shape = context.pod_template.shape;
  for (size_t i = 0; i < context.nodes.size(); ++i) {
    const NodeState& node = context.nodes[i];
    const bool is_meant = (node.target != static_cast<int>(target)) == others && node.possible;
    for (; is_meant && pods > 0 && Fits(context, reserved, i, shape); --pods) {
      Reserve(reserved, i, shape);
    }
  }
  return pods;
}

// True if a pod of the workload fits no node now, but would fit the Job's node without the Job's
// pod.
bool BlocksWorkload(const Context& context, const Reserved& reserved, const PodView& job_pod) {
  const PodShape& shape = context.pod_template.shape;
  for (size_t i = 0; i < context.nodes.size(); ++i) {
    if (context.nodes[i].possible && Fits(context, reserved, i, shape)) {
      return false;
    }
  }
  const NodeState& node = context.nodes[static_cast<size_t>(job_pod.node)];
  Resources capacity = node.view->free;
  for (const auto& [name, amount] : job_pod.pod->requests) {
    capacity[name] += amount;
  }
  ++capacity["pods"];
  return node.possible && Covers(capacity, shape.requests);
}

// Returns an unbound pod of the workload that the scheduler has tried to place without success;
// nullptr if there is none. Most such pods preempt the builder's pod. A pod whose priority class
// forbids preemption would wait until the build ends, so the Job is deleted for that pod.
const PodView* UnschedulablePod(const Context& context, Effects& effects) {
  for (const PodView& pod : context.pods) {
    if (IsWorkloadPod(pod) && pod.pod->node.empty() && pod.pod->gates.empty()) {
      const WallTime looked_at = pod.pod->meta.created + kSchedulingGrace;
      if (context.in.now >= looked_at) {
        return &pod;
      }
      effects.RequeueAt(looked_at);
    }
  }
  return nullptr;
}

}  // namespace

const PodView* PodOfJob(const Context& context, const std::string& job) {
  for (const PodView& pod : context.pods) {
    const auto& labels = pod.pod->meta.labels;
    auto name = labels.find("batch.kubernetes.io/job-name");
    name = name == labels.end() ? labels.find("job-name") : name;
    if (pod.of_job && name != labels.end() && name->second == job) {
      return &pod;
    }
  }
  return nullptr;
}

bool MayNeverStart(const Context& context, const api::BuilderStatus& builder) {
  const std::string& job = api::CurrentJob(builder);
  const WallTime since = builder.proof ? builder.proof->requested_time : builder.elected_time;
  if (job.empty() || (!builder.proof && !builder.node.empty()) ||
      context.in.now < since + kJobStartGrace) {
    return false;
  }
  const PodView* pod = PodOfJob(context, job);
  return pod == nullptr || pod->node < 0;
}

absl::StatusOr<codec::Json> TemplateOfJob(const Context& context) {
  const codec::Json& pod_template = *context.pod_template.pod_template;
  const auto& overrides = context.in.warmup.spec.compile.overrides;
  if (!overrides.has_value()) {
    return pod_template;
  }
  const std::string& container = context.pod_template.factors.container;
  CW_RETURN_IF_ERROR(CheckOverrides(pod_template, *overrides, container));
  return render::ApplyOverrides(pod_template, *overrides, container);
}

PodShape ShapeOfJob(const Context& context) {
  const auto pod_template = TemplateOfJob(context);
  const codec::Json* spec = pod_template.ok() ? codec::At(*pod_template, {"spec"}) : nullptr;
  return spec == nullptr ? context.pod_template.shape : ShapeOf(*spec);
}

JobNodes NodesByCapacity(const Context& context, Reserved reserved, const LiveKey& key) {
  const int64_t left =
      ReserveForPods(context, CountUnboundPods(context), key.target, true, reserved);
  ReserveForPods(context, left, key.target, false, reserved);
  const PodShape shape = ShapeOfJob(context);
  JobNodes out{.nodes = NodesFor(context, key)};
  const auto full = std::stable_partition(out.nodes.begin(), out.nodes.end(), [&](size_t node) {
    return Fits(context, reserved, node, shape);
  });
  out.has_capacity = full != out.nodes.begin();
  return out;
}

const PodView* PodWaitingForSharedClaim(const Context& context, Duration grace, int job_node,
                                        Effects& effects) {
  const auto& pod_template = context.pod_template.pod_template;
  if (pod_template == nullptr || !SharesVolumeClaim(*pod_template)) {
    return nullptr;
  }
  for (const PodView& pod : context.pods) {
    if (!IsWorkloadPod(pod) || !pod.pod->gates.empty() || HasStarted(pod) ||
        (pod.node >= 0 && pod.node == job_node)) {
      continue;
    }
    const std::chrono::duration<double> held(gate::HeldSecondsOf(*pod.pod));
    const WallTime due = pod.pod->meta.created + std::chrono::duration_cast<Duration>(held) + grace;
    if (context.in.now >= due) {
      return &pod;
    }
    effects.RequeueAt(due);
  }
  return nullptr;
}

std::string BlockingReason(const Context& context, const PodView* job_pod, const Reserved& reserved,
                           Effects& effects) {
  if (context.in.constraints.quota_exceeded) {
    return "the Job is deleted because a pod of the workload could not be created: the quota of "
           "the namespace is exceeded";
  }
  if (job_pod == nullptr || job_pod->node < 0) {
    return "";
  }
  if (const PodView* pod =
          PodWaitingForSharedClaim(context, kVolumeGrace, job_pod->node, effects)) {
    return fmt::format(
        "the Job is deleted because pod {} of the workload has not started and may wait for a "
        "PersistentVolumeClaim that the Job mounts too",
        pod->pod->meta.name);
  }
  if (!BlocksWorkload(context, reserved, *job_pod)) {
    return "";
  }
  const PodView* pod = UnschedulablePod(context, effects);
  return pod == nullptr
             ? ""
             : fmt::format(
                   "the Job is deleted because pod {} of the workload fits on no other node",
                   pod->pod->meta.name);
}

}  // namespace cachewarm::plan

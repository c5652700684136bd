// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/election.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lib/api/reasons.h"
#include "operator/model/pod_groups.h"
#include "operator/plan/builders/attempts.h"
#include "operator/plan/builders/job_refusal.h"
#include "operator/plan/builders/jobs.h"
#include "operator/plan/builders/proof.h"
#include "operator/plan/decisions.h"

namespace cachewarm::plan {

namespace reason = api::reason;
using api::BuilderStatus;

namespace {

// Time that the agents get to replace cache directories with files of a suspended bundle, before a
// Job mounts such a directory.
constexpr Duration kTreeReplacement = std::chrono::seconds(30);

// True if a bundle with files of a suspended one is active on the node.
bool HasSuspendedTree(const Bundles& bundles, const NodeState& node) {
  return node.reported != nullptr &&
         std::any_of(node.reported->bundles.begin(), node.reported->bundles.end(),
                     [&](const api::NodeBundle& each) {
                       return each.state == api::BundleState::kActive &&
                              bundles.HasSuspendedFiles(each.digest);
                     });
}

// Returns the running pods of `key` that compiled (result miss or partial) although they started
// after `bundle` was published. Excludes the last builder.
std::vector<const PodView*> PodsThatMissed(const Context& context, const Builds& builds,
                                           const LiveKey& key, const api::BundleStatus& bundle) {
  const BuilderStatus* last = FindBuilder(builds.builders, key.key);
  std::vector<const PodView*> out = RunningPods(context, key.key);
  std::erase_if(out, [&](const PodView* pod) {
    const bool missed =
        pod->counted == api::StartResult::kMiss || pod->counted == api::StartResult::kPartial;
    const bool built = last != nullptr && last->pod_uid == pod->pod->meta.uid;
    return !missed || built || pod->container->started_time <= bundle.published_time;
  });
  return out;
}

// Elects as the builder the oldest held pod that at present fits a node with the key's GPU type and
// CPU class.
void ElectHeld(const Context& context, Builds& builds, const LiveKey& key,
               const BuilderStatus* last) {
  for (size_t i = 0; i < context.pods.size(); ++i) {
    const PodView& pod = context.pods[i];
    const bool taken = std::any_of(builds.candidates.begin(), builds.candidates.end(),
                                   [&](const BuilderCandidate& each) { return each.pod == i; });
    if (!pod.held || !pod.injected || pod.pod->meta.deleting || taken ||
        pod.factors != context.pod_template.factors || model::HasOtherGate(*pod.pod)) {
      continue;
    }
    const BuildTrigger trigger{.event = BuildEvent::kHeldPodElected,
                               .revision = pod.revision,
                               .created = pod.pod->meta.created};
    if (!MayBuild(context, builds, last, trigger) || !ReserveCapacity(context, builds, key, pod)) {
      continue;
    }
    builds.candidates.push_back({.pod = i, .target = key.target, .has_capacity = true});
    BuilderStatus& builder = StartBuild(context, builds, key, trigger);
    builder.pod_uid = pod.pod->meta.uid;
    builder.pod_name = pod.pod->meta.name;
    return;
  }
}

// Elects the first pod that may build. After a failure, elects the builder that failed only if no
// other pod may build: the cause may be its node or its directory.
void ElectFirstPod(const Context& context, Builds& builds, const LiveKey& key,
                   std::vector<const PodView*> running) {
  const BuilderStatus* last = FindBuilder(builds.builders, key.key);
  if (last != nullptr && last->state == BuilderState::kFailed) {
    std::stable_partition(running.begin(), running.end(),
                          [&](const PodView* pod) { return pod->pod->meta.uid != last->pod_uid; });
  }
  for (const PodView* pod : running) {
    const BuildTrigger trigger{.event = BuildEvent::kPodElected,
                               .revision = pod->revision,
                               .created = pod->pod->meta.created};
    if (MayBuild(context, builds, last, trigger)) {
      BuilderStatus& builder = StartBuild(context, builds, key, trigger);
      ElectPod(context, builds, builder, *pod);
      FollowCapture(context, builds, builder);
      return;
    }
  }
}

void ElectJob(const Context& context, Builds& builds, const LiveKey& key) {
  const api::SuspendedBundle* suspended = builds.bundles.LastSuspendedFor(key);
  if (suspended != nullptr && context.in.now < suspended->suspended_time + kTreeReplacement) {
    builds.effects.RequeueAt(suspended->suspended_time + kTreeReplacement);
    return;
  }
  const BuilderStatus* last = FindBuilder(builds.builders, key.key);
  const BuildTrigger trigger{.event = BuildEvent::kJobElected,
                             .revision = JobRevision(context),
                             .created = context.in.now};
  if (MayMakeJob(context, builds, key) && MayBuild(context, builds, last, trigger)) {
    MakeJob(context, builds, key, StartBuild(context, builds, key, trigger));
  }
}

// Rebuilds a bundle that pods missed. A pod that missed it has compiled already, unless the next
// bundle must be proven, which only a Job can start.
void ElectForMissed(const Context& context, Builds& builds, const LiveKey& key,
                    std::vector<const PodView*> missed) {
  if (!NeedsProof(context.in.warmup.spec)) {
    ElectFirstPod(context, builds, key, std::move(missed));
  } else if (!missed.empty()) {
    ElectJob(context, builds, key);
  }
}

void ElectFor(const Context& context, Builds& builds, const LiveKey& key) {
  const BuilderStatus* last = FindBuilder(builds.builders, key.key);
  if (last != nullptr && IsRunning(*last)) {
    return;
  }
  if (const api::BundleStatus* bundle = builds.bundles.For(key)) {
    ElectForMissed(context, builds, key, PodsThatMissed(context, builds, key, *bundle));
    return;
  }
  if (UsesJob(context)) {
    ElectJob(context, builds, key);
    return;
  }
  std::vector<const PodView*> running = BuilderPods(context, builds, key);
  if (running.empty()) {
    ElectHeld(context, builds, key, last);
  } else {
    ElectFirstPod(context, builds, key, std::move(running));
  }
}

// ---- groups with several images -----------------------------------------------------------------

using GroupRevision = std::pair<std::string, std::string>;

GroupRevision GroupRevisionOf(const PodView& pod) {
  return {model::GroupOf(*pod.pod), pod.revision};
}

// Returns group and revision of all pods of the current template that belong to a group.
std::set<GroupRevision> GroupsOfTemplate(const Context& context) {
  std::set<GroupRevision> out;
  for (const PodView& pod : context.pods) {
    if (pod.injected && !pod.of_job && !pod.finished && !pod.pod->meta.deleting &&
        pod.factors == context.pod_template.factors) {
      out.insert(GroupRevisionOf(pod));
    }
  }
  std::erase_if(out, [](const GroupRevision& each) { return each.first.empty(); });
  return out;
}

// Elects builders for pods with another image or device count in the groups of the current
// template, such as the leader of a LeaderWorkerSet: no pod of the template has their key. Pods of
// other revisions are not elected, because their images are about to disappear. A pod without
// devices compiles nothing if the template's pods have some.
void ElectInGroups(const Context& context, Builds& builds) {
  if (UsesJob(context) || NeedsProof(context.in.warmup.spec)) {
    return;  // a Job runs the template, so it cannot build for another image
  }
  const std::set<GroupRevision> groups = GroupsOfTemplate(context);
  if (groups.empty()) {
    return;
  }
  for (const LiveKey& key : context.keys) {
    const BuilderStatus* last = FindBuilder(builds.builders, key.key);
    if (key.current || (key.factors.devices == 0 && context.pod_template.factors.devices > 0) ||
        (last != nullptr && IsRunning(*last)) || IsExhausted(context, builds.bundles, key, last)) {
      continue;
    }
    const api::BundleStatus* bundle = builds.bundles.For(key);
    std::vector<const PodView*> pods = bundle == nullptr
                                           ? BuilderPods(context, builds, key)
                                           : PodsThatMissed(context, builds, key, *bundle);
    std::erase_if(pods,
                  [&](const PodView* pod) { return !groups.contains(GroupRevisionOf(*pod)); });
    ElectFirstPod(context, builds, key, std::move(pods));
  }
}

}  // namespace

std::vector<const PodView*> BuilderPods(const Context& context, const Builds& builds,
                                        const LiveKey& key) {
  std::vector<const PodView*> out = RunningPods(context, key.key);
  const api::SuspendedBundle* suspended = builds.bundles.LastSuspendedFor(key);
  std::erase_if(out, [&](const PodView* pod) {
    return suspended != nullptr &&
           (pod->container->started_time <= suspended->suspended_time ||
            HasSuspendedTree(builds.bundles, context.nodes[static_cast<size_t>(pod->node)]));
  });
  return out;
}

void ElectPod(const Context& context, Builds& builds, BuilderStatus& builder, const PodView& pod) {
  builder.pod_uid = pod.pod->meta.uid;
  builder.pod_name = pod.pod->meta.name;
  builder.node = pod.pod->node;
  builds.effects.RecordEvent(
      context.in.warmup, false, reason::kBuilderElected,
      fmt::format("pod {} on node {} builds the cache for {}, {} (attempt {})", builder.pod_name,
                  builder.node, builder.gpu_type, builder.cpu_class, builder.attempt));
}

bool ReserveCapacity(const Context& context, Builds& builds, const LiveKey& key,
                     const PodView& pod) {
  const auto& nodes = context.targets[key.target].nodes;
  const auto fitting = std::find_if(nodes.begin(), nodes.end(), [&](size_t node) {
    return context.nodes[node].prepared && Fits(context, builds.reserved, node, *pod.shape);
  });
  if (fitting == nodes.end()) {
    return false;
  }
  Reserve(builds.reserved, *fitting, *pod.shape);
  return true;
}

void ElectBuilders(const Context& context, Builds& builds) {
  for (const LiveKey& key : context.keys) {
    if (key.current) {
      ElectFor(context, builds, key);
    }
  }
  ElectInGroups(context, builds);
}

}  // namespace cachewarm::plan

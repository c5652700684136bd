// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "lib/api/reasons.h"
#include "lib/base/digest.h"
#include "operator/plan/acceptance/refusals.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

// Returns a hash that changes when the template changes. If the warmup has a selector, the template
// is read from a pod, and the operator stores more fields of held pods than of other pods. The hash
// then covers only fields that are stored for every pod, so that the release of a pod does not
// change the hash.
std::string TemplateHash(const Context& context) {
  if (context.in.workload.kind != WorkloadKind::kSelector) {
    return context.pod_template.revision;
  }
  const auto newest = std::find_if(context.pods.rbegin(), context.pods.rend(),
                                   [](const PodView& pod) { return !pod.of_job; });
  if (newest == context.pods.rend()) {
    return "";
  }
  const PodFactors& factors = newest->factors;
  return "p-" + DigestOf(fmt::format("{}\n{}\n{}\n{}", newest->revision, factors.image,
                                     factors.devices, factors.container))
                    .Short();
}

std::string PolicyHash(const Context& context) {
  std::string text = context.in.settings.root;
  for (const api::EnvVar& var : context.workload.env) {
    text += fmt::format("\n{}={}", var.name, var.value);
  }
  for (const auto& [key, value] : context.in.namespace_labels) {
    text += fmt::format("\n{}={}", key, value);
  }
  return DigestOf(text).Short();
}

std::optional<api::NodeIdentity> IdentityOf(const Context& context, const std::string& name) {
  for (const NodeView& view : context.in.nodes) {
    if (view.node->meta.name == name) {
      return api::NodeIdentity{
          .name = name, .uid = view.node->meta.uid, .boot_id = view.node->boot_id};
    }
  }
  return std::nullopt;
}

// True if a pod with the cache volume has started on the node since the suspension: kubelet and
// runtime can mount it there.
bool HasStartedPodSince(const Context& context, const api::Suspension& was,
                        const std::string& node) {
  return std::any_of(context.pods.begin(), context.pods.end(), [&](const PodView& pod) {
    return pod.injected && pod.pod->node == node && pod.container != nullptr &&
           pod.container->running && pod.container->started_time > was.suspended_time;
  });
}

bool IsUnchanged(const Context& context, const api::Suspension& was,
                 const api::NodeIdentity& node) {
  const auto is = IdentityOf(context, node.name);
  const bool same = is && is->uid == node.uid && is->boot_id == node.boot_id;
  return same &&
         !(was.reason == reason::kVolumeRejected && HasStartedPodSince(context, was, node.name));
}

// True if a retry of the injection would fail the same way. New nodes do not count as a change,
// because an autoscaler would otherwise trigger a retry with every node that joins.
bool HasSameConditions(const Context& context, const std::optional<api::Suspension>& present) {
  const api::Suspension& was = *present;
  const bool same = was.template_hash == TemplateHash(context) &&
                    was.policy_hash == PolicyHash(context) &&
                    was.generation == context.in.warmup.generation;
  const bool has_other_cause =
      was.reason == reason::kPodsCrashing && HasOtherCrashCause({context, present}, was.revision);
  return same && !has_other_cause &&
         std::any_of(was.nodes.begin(), was.nodes.end(), [&](const api::NodeIdentity& node) {
           return IsUnchanged(context, was, node);
         });
}

bool IsInForce(const std::optional<api::Suspension>& suspension) {
  return suspension && suspension->resumed_time == WallTime{};
}

void AddNode(const Context& context, const PodView& pod, std::vector<api::NodeIdentity>& nodes) {
  const auto identity = IdentityOf(context, pod.pod->node);
  if (!identity) {
    return;
  }
  const bool known = std::any_of(nodes.begin(), nodes.end(),
                                 [&](const auto& each) { return each.name == identity->name; });
  if (!known && nodes.size() < api::kSuspensionNodesMax) {
    nodes.push_back(*identity);
  }
}

void Suspend(const Context& context, const InjectionFailure& failure,
             std::optional<api::Suspension>& suspension) {
  if (!IsInForce(suspension)) {
    suspension = api::Suspension{.reason = std::string(failure.reason),
                                 .message = TruncateMessage(failure.message),
                                 .suspended_time = context.stamp(),
                                 .template_hash = TemplateHash(context),
                                 .policy_hash = PolicyHash(context),
                                 .generation = context.in.warmup.generation,
                                 .revision = failure.revision};
  }
  for (const PodView* pod : failure.pods) {
    AddNode(context, *pod, suspension->nodes);
  }
}

}  // namespace

std::optional<api::Suspension> NextSuspension(const Context& context) {
  std::optional<api::Suspension> suspension = context.in.warmup.status.suspension;
  if (IsInForce(suspension) && !HasSameConditions(context, suspension)) {
    suspension->resumed_time = context.stamp();
  }
  if (const auto failure = DetectInjectionFailure({context, suspension})) {
    Suspend(context, *failure, suspension);
  }
  const bool is_relevant =
      IsInForce(suspension) ||
      std::any_of(context.pods.begin(), context.pods.end(), [&](const auto& pod) {
        return suspension && pod.pod->meta.created <= suspension->resumed_time;
      });
  return is_relevant ? suspension : std::nullopt;
}

Refusal Suspended(const AcceptanceContext& context) {
  const auto& suspension = context.suspension;
  return IsInForce(suspension) ? Refuse(suspension->reason, suspension->message) : std::nullopt;
}

}  // namespace cachewarm::plan

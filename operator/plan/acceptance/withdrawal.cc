// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "lib/api/reasons.h"
#include "lib/base/digest.h"
#include "operator/plan/acceptance/refusals.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

// A selector's template is learnt from a pod, of which more is known while it is held: only what is
// always known of it can be compared.
std::string TemplateHash(const Round& round) {
  if (round.in.workload.kind != WorkloadKind::kSelector) {
    return round.pod_template.revision;
  }
  const auto newest = std::find_if(round.pods.rbegin(), round.pods.rend(),
                                   [](const PodView& pod) { return !pod.of_job; });
  if (newest == round.pods.rend()) {
    return "";
  }
  const PodFactors& factors = newest->factors;
  return "p-" + DigestOf(fmt::format("{}\n{}\n{}\n{}", newest->revision, factors.image,
                                     factors.devices, factors.container))
                    .Short();
}

std::string PolicyHash(const Round& round) {
  std::string text = round.in.settings.root;
  for (const api::EnvVar& var : round.env) {
    text += fmt::format("\n{}={}", var.name, var.value);
  }
  for (const auto& [key, value] : round.in.namespace_labels) {
    text += fmt::format("\n{}={}", key, value);
  }
  return DigestOf(text).Short();
}

std::optional<api::NodeIdentity> IdentityOf(const Round& round, const std::string& name) {
  for (const NodeView& view : round.in.nodes) {
    if (view.node->meta.name == name) {
      return api::NodeIdentity{.name = name, .uid = view.node->meta.uid, .boot = view.node->boot};
    }
  }
  return std::nullopt;
}

// kubelet and runtime have taken our volume there since.
bool HasStartedOne(const Round& round, const api::Withdrawal& was, const std::string& node) {
  return std::any_of(round.pods.begin(), round.pods.end(), [&](const PodView& pod) {
    return pod.ours && pod.pod->node == node && pod.container != nullptr &&
           pod.container->running && pod.container->started_at > was.time;
  });
}

bool IsAsItWas(const Round& round, const api::Withdrawal& was, const api::NodeIdentity& node) {
  const auto is = IdentityOf(round, node.name);
  const bool same = is && is->uid == node.uid && is->boot == node.boot;
  return same && !(was.reason == reason::kVolumeRejected && HasStartedOne(round, was, node.name));
}

// In the case in which it happened it would happen again. Nodes that join do not change the case:
// an autoscaler would have it tried with every one of them.
bool IsSameCase(const Round& round, const api::Withdrawal& was) {
  const bool same = was.pod_template == TemplateHash(round) && was.policy == PolicyHash(round) &&
                    was.generation == round.in.warmup.generation;
  const bool otherwise = was.reason == reason::kPodsCrash && CrashesOtherwise(round, was.revision);
  return same && !otherwise &&
         std::any_of(was.nodes.begin(), was.nodes.end(),
                     [&](const api::NodeIdentity& node) { return IsAsItWas(round, was, node); });
}

bool Stands(const std::optional<api::Withdrawal>& withdrawal) {
  return withdrawal && withdrawal->retried_time == WallTime{};
}

void AddNode(const Round& round, const PodView& pod, std::vector<api::NodeIdentity>& nodes) {
  const auto identity = IdentityOf(round, pod.pod->node);
  if (!identity) {
    return;
  }
  const bool known = std::any_of(nodes.begin(), nodes.end(),
                                 [&](const auto& each) { return each.name == identity->name; });
  if (!known && nodes.size() < api::kWithdrawnNodesMax) {
    nodes.push_back(*identity);
  }
}

void Withdraw(Round& round, const Harm& harm) {
  auto& withdrawal = round.out.status.withdrawal;
  if (!Stands(withdrawal)) {
    withdrawal = api::Withdrawal{.reason = std::string(harm.why),
                                 .message = CutMessage(harm.message),
                                 .time = round.stamp(),
                                 .pod_template = TemplateHash(round),
                                 .policy = PolicyHash(round),
                                 .generation = round.in.warmup.generation,
                                 .revision = harm.revision};
  }
  for (const PodView* pod : harm.pods) {
    AddNode(round, *pod, withdrawal->nodes);
  }
}

}  // namespace

void FollowHarm(Round& round) {
  auto& withdrawal = round.out.status.withdrawal;
  if (Stands(withdrawal) && !IsSameCase(round, *withdrawal)) {
    withdrawal->retried_time = round.stamp();
  }
  if (const auto harm = FindHarm(round)) {
    Withdraw(round, *harm);
  }
  const bool matters =
      Stands(withdrawal) || std::any_of(round.pods.begin(), round.pods.end(), [&](const auto& pod) {
        return withdrawal && pod.pod->meta.created <= withdrawal->retried_time;
      });
  if (!matters) {
    withdrawal.reset();
  }
}

Refusal Withdrawn(const Round& round) {
  const auto& withdrawal = round.out.status.withdrawal;
  return Stands(withdrawal) ? No(withdrawal->reason, withdrawal->message) : std::nullopt;
}

}  // namespace cachewarm::plan

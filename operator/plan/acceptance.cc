// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/base/digest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/plan/decisions.h"
#include "operator/render/fields.h"
#include "operator/render/injection.h"
#include "operator/render/rehearsal.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

constexpr Duration kRehearseEvery = std::chrono::minutes(10);
// With a gate, a held pod can be kept off one node that has no usable directory.
constexpr size_t kUnpreparedMax = 1;

using Refusal = std::optional<api::Verdict>;

Refusal No(std::string_view why, std::string message) {
  return api::Verdict{.holds = false, .reason = std::string(why), .message = std::move(message)};
}

const api::Condition* ReadyBefore(const Round& round) {
  return api::FindCondition(round.in.warmup.status.conditions, "Ready");
}

bool WasInjecting(const Round& round) {
  return round.in.warmup.status.injection.has_value();
}

// ---- what only the user can change --------------------------------------------------------------

Refusal BadSpec(const Round& round) {
  if (!round.spec_problem.empty()) {
    return No(reason::kInvalidSpec, round.spec_problem);
  }
  return std::nullopt;
}

Refusal NoWorkload(const Round& round) {
  const Workload& workload = round.in.workload;
  if (!workload.found) {
    return No(reason::kWorkloadNotFound, workload.problem);
  }
  if (round.pod_template.pod_template == nullptr) {
    return No(reason::kWorkloadNotFound,
              "no pod matches spec.selector yet; the template is learnt from the first one");
  }
  return std::nullopt;
}

Refusal Unsupported(const Round& round) {
  const codec::Json* os = render::Find(*round.pod_template.pod_template, {"spec", "os", "name"});
  if (os != nullptr && os->is_string() && os->get<std::string>() != "linux") {
    return No(reason::kUnsupportedWorkload,
              "spec.os.name of the pod template is not linux; only Linux pods can be warmed");
  }
  return std::nullopt;
}

Refusal NoContainer(const Round& round) {
  if (round.pod_template.factors.container.empty()) {
    const std::string& wanted = round.in.warmup.spec.container;
    return No(reason::kContainerNotFound,
              wanted.empty()
                  ? std::string("the pod template has no container; add one")
                  : fmt::format("the pod template has no container \"{}\"; set spec.container to "
                                "one of its containers, or leave it out",
                                wanted));
  }
  if (round.pod_template.factors.image.empty()) {
    return No(reason::kContainerNotFound,
              fmt::format("container \"{}\" of the pod template names no image; give it one",
                          round.pod_template.factors.container));
  }
  return std::nullopt;
}

Refusal Conflict(const Round& round) {
  const codec::Json* spec = render::Find(*round.pod_template.pod_template, {"spec"});
  std::string conflict =
      spec == nullptr ? std::string() : render::MountConflict(*spec, round.in.settings.root);
  return conflict.empty() ? std::nullopt : No(reason::kVolumeConflict, std::move(conflict));
}

Refusal ForbiddenNamespace(const Round& round) {
  const auto& labels = round.in.namespace_labels;
  const auto level = labels.find("pod-security.kubernetes.io/enforce");
  if (level != labels.end() && (level->second == "baseline" || level->second == "restricted")) {
    return No(reason::kNamespaceForbids,
              fmt::format("namespace {} enforces pod security \"{}\", which forbids hostPath "
                          "volumes; the workload runs without us. To warm it, use a namespace "
                          "whose label pod-security.kubernetes.io/enforce is privileged or unset",
                          round.in.warmup.ns, level->second));
  }
  return std::nullopt;
}

// What tells the workload's pods from others at admission.
std::map<std::string, std::string> InjectionLabels(const Round& round) {
  const Workload& workload = round.in.workload;
  if (workload.kind == WorkloadKind::kJob) {
    // Its own selector names the uid of this one Job; a Job made again has another.
    return {{"batch.kubernetes.io/job-name", workload.name}};
  }
  return workload.selector.empty() ? round.pod_template.labels : workload.selector;
}

Refusal NoLabels(const Round& round) {
  return InjectionLabels(round).empty()
             ? No(reason::kInvalidSpec,
                  "neither spec.selector nor the pod template has labels, so its pods cannot be "
                  "told from others; add a label to spec.template.metadata.labels")
             : std::nullopt;
}

Refusal Overlap(const Round& round) {
  const auto labels = InjectionLabels(round);
  for (const OtherWarmup& other : round.in.others) {
    const bool same_workload =
        other.workload_ref && other.workload_ref == round.in.warmup.spec.workload_ref;
    const bool same_pods = !other.labels.empty() && (api::HasLabels(labels, other.labels) ||
                                                     api::HasLabels(other.labels, labels));
    if (other.older && (same_workload || same_pods)) {
      return No(reason::kOverlap,
                fmt::format("CacheWarmup {} is older and covers the same pods; delete one of them",
                            other.name));
    }
  }
  return std::nullopt;
}

// ---- what changes by itself ---------------------------------------------------------------------

struct Preparation {
  size_t ready = 0;
  size_t prepared = 0;
  size_t pending = 0;  // an agent is there and has not failed
  std::vector<const NodeState*> cannot;
};

Preparation CountPrepared(const Round& round) {
  Preparation out;
  for (const NodeState& node : round.nodes) {
    if (!node.possible || !node.ready) {
      continue;
    }
    ++out.ready;
    if (node.prepared) {
      ++out.prepared;
    } else if (IsWarming(*node.view->node)) {
      continue;  // no pod can land there before it is prepared, or has had its time
    } else if (node.view->agent_ready && node.problem.empty()) {
      ++out.pending;
    } else {
      out.cannot.push_back(&node);
    }
  }
  return out;
}

std::string Describe(const NodeState& node) {
  return fmt::format("{} ({})", node.view->node->meta.name,
                     node.problem.empty() ? "no agent of cachewarm is ready there" : node.problem);
}

Refusal Unprepared(const Round& round) {
  const Preparation count = CountPrepared(round);
  if (count.ready == 0) {
    return No(
        reason::kNoFittingNode,
        "no Ready node fits the pod template (node selector, affinity, tolerations, devices)");
  }
  const size_t allowed = round.may_hold() ? kUnpreparedMax : 0;
  const size_t unprepared = count.pending + count.cannot.size();
  const bool enough =
      count.prepared > 0 &&
      (WasInjecting(round) ? unprepared <= allowed : count.pending == 0 && unprepared <= allowed);
  if (enough) {
    return std::nullopt;
  }
  if (count.cannot.empty()) {
    return No(reason::kPreparing, fmt::format("{} of {} nodes have prepared the directory",
                                              count.prepared, count.ready));
  }
  return No(reason::kDirectoryUnusable,
            fmt::format("{} of {} nodes cannot give pods a usable directory, first {}; pods run "
                        "without the cache until they can",
                        count.cannot.size(), count.ready, Describe(*count.cannot.front())));
}

bool IsRefused(const Rehearsal& rehearsal) {
  return rehearsal.as_is == Answer::kAllowed && rehearsal.injected == Answer::kRefused;
}

Refusal Refused(const Round& round) {
  const Rehearsal& rehearsal = round.in.rehearsal;
  const CreateFailure& failure = round.in.create_failure;
  if (failure.time != WallTime{}) {
    return No(reason::kInjectionRefused,
              fmt::format("the API server refused a pod because of our volume or gate: {}",
                          failure.message));
  }
  if (IsRefused(rehearsal)) {
    return No(reason::kInjectionRefused,
              fmt::format("the API server allows the pod as it is and refuses it with our volume: "
                          "{}",
                          rehearsal.message));
  }
  // Refused once: stays withdrawn until a rehearsal that is younger says otherwise.
  const api::Condition* before = ReadyBefore(round);
  const bool stays = before != nullptr && before->status == "False" &&
                     before->reason == reason::kInjectionRefused &&
                     before->observed_generation == round.in.warmup.generation &&
                     rehearsal.time <= before->last_transition_time;
  return stays ? No(reason::kInjectionRefused, before->message) : std::nullopt;
}

// ---- rehearsal ----------------------------------------------------------------------------------

RehearsalWish MakeRehearsal(const Round& round) {
  const api::CacheWarmup& warmup = round.in.warmup;
  const TemplateView& shape = round.pod_template;
  render::RehearsalPods pods =
      render::MakeRehearsalPods({.warmup = warmup,
                                 .pod_template = *shape.pod_template,
                                 .mount = {.container = shape.factors.container,
                                           .host_path = HostPath(round, shape.run_as),
                                           .env = round.env},
                                 .gate = round.may_hold()});
  std::string text = codec::DumpJson(*pods.injected);
  for (const auto& [key, value] : round.in.namespace_labels) {
    text += fmt::format("\n{}={}", key, value);
  }
  return {.fingerprint = DigestOf(text).Short(),
          .as_is = std::move(pods.as_is),
          .injected = std::move(pods.injected)};
}

// Wishes a rehearsal where none is recent. Refuses only a warmup that was never let in: one that
// injects already goes on until an answer says otherwise.
Refusal Unrehearsed(Round& round) {
  RehearsalWish wish = MakeRehearsal(round);
  const Rehearsal& last = round.in.rehearsal;
  const bool answered = last.fingerprint == wish.fingerprint;
  const WallTime next = last.time + kRehearseEvery;
  if (answered && round.in.now < next) {
    WakeAt(round, next);
    return std::nullopt;
  }
  round.out.rehearsal = std::move(wish);
  return answered || WasInjecting(round)
             ? std::nullopt
             : No(reason::kRehearsing, "asking the API server whether the pod would be allowed");
}

Refusal Accepts(Round& round) {
  using Check = Refusal (*)(const Round&);
  static constexpr std::array<Check, 8> kHard = {BadSpec,     NoWorkload, Unsupported,
                                                 NoContainer, Conflict,   ForbiddenNamespace,
                                                 NoLabels,    Overlap};
  for (const Check check : kHard) {
    if (Refusal refusal = check(round)) {
      round.acceptance.hard = true;
      return refusal;
    }
  }
  Refusal unrehearsed = Unrehearsed(round);
  static constexpr std::array<Check, 3> kSoft = {Refused, FindHarm, Unprepared};
  for (const Check check : kSoft) {
    if (Refusal refusal = check(round)) {
      return refusal;
    }
  }
  return unrehearsed;
}

api::Injection MakeInjection(const Round& round) {
  api::Injection out{.labels = InjectionLabels(round),
                     .container = round.pod_template.factors.container,
                     .env = round.env};
  if (round.in.warmup.status.injection) {
    out.warm_revisions = round.in.warmup.status.injection->warm_revisions;
  }
  return out;
}

// The pods that a selector's template was learnt from are gone: what it was stays good for the
// next.
bool IsBetweenPods(const Round& round) {
  return round.in.workload.kind == WorkloadKind::kSelector &&
         round.pod_template.pod_template == nullptr && WasInjecting(round) &&
         !ForbiddenNamespace(round) && !BadSpec(round);
}

}  // namespace

void DecideAcceptance(Round& round) {
  Acceptance& out = round.acceptance;
  if (round.deleting()) {
    round.out.status.injection.reset();
    out.hard = true;
    return;
  }
  if (IsBetweenPods(round)) {
    out = {.ready = {.holds = true,
                     .reason = std::string(reason::kInjecting),
                     .message = "no pod is left; the next ones get the cache"},
           .inject = true,
           .hard = true};
    return;
  }
  const Refusal refusal = Accepts(round);
  const bool waits = round.paused() && !WasInjecting(round);
  out.inject = !refusal && !waits;
  if (refusal) {
    out.ready = *refusal;
  } else if (round.paused()) {
    out.ready = {.holds = !waits,
                 .reason = std::string(reason::kPaused),
                 .message = "spec.paused is set: what is there stays, nothing new is done"};
  } else {
    out.ready = {.holds = true,
                 .reason = std::string(reason::kInjecting),
                 .message = "new pods get the cache"};
  }
  if (out.inject) {
    round.out.status.injection = MakeInjection(round);
  } else {
    round.out.status.injection.reset();
  }
}

}  // namespace cachewarm::plan

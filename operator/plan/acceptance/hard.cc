// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/codec/json_value.h"
#include "operator/plan/acceptance/refusals.h"
#include "operator/render/fields.h"
#include "operator/render/injection.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

Refusal NoWorkload(const Round& round) {
  const Workload& workload = round.in.workload;
  if (!workload.found) {
    return No(reason::kWorkloadNotFound, workload.problem);
  }
  if (round.pod_template.pod_template == nullptr) {
    for (const auto check : {Withdrawn, RefusedByServer}) {
      if (Refusal refusal = check(round)) {
        return refusal;
      }
    }
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

Refusal NoLabels(const Round& round) {
  return InjectionLabels(round).empty()
             ? No(reason::kInvalidSpec,
                  "neither spec.selector nor the pod template has labels, so its pods cannot be "
                  "told from others; add a label to spec.template.metadata.labels")
             : std::nullopt;
}

Refusal Overlap(const Round& round) {
  const std::map<std::string, std::string> labels = InjectionLabels(round);
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

}  // namespace

Refusal BadSpec(const Round& round) {
  if (!round.spec_problem.empty()) {
    return No(reason::kInvalidSpec, round.spec_problem);
  }
  return std::nullopt;
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

Refusal HardRefusal(const Round& round) {
  using Check = Refusal (*)(const Round&);
  static constexpr std::array<Check, 8> kChecks = {BadSpec,     NoWorkload, Unsupported,
                                                   NoContainer, Conflict,   ForbiddenNamespace,
                                                   NoLabels,    Overlap};
  for (const Check check : kChecks) {
    if (Refusal refusal = check(round)) {
      return refusal;
    }
  }
  return std::nullopt;
}

}  // namespace cachewarm::plan

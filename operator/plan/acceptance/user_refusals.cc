// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/plan/acceptance/injectable.h"
#include "operator/plan/acceptance/refusals.h"

namespace cachewarm::plan {

namespace reason = api::reason;

namespace {

Refusal NoWorkload(const AcceptanceContext& context) {
  const Workload& workload = context.in.workload;
  if (!workload.found) {
    return Refuse(reason::kWorkloadNotFound, workload.problem);
  }
  if (context.pod_template.pod_template == nullptr) {
    for (const auto check : {Suspended, RefusedByServer}) {
      if (Refusal refusal = check(context)) {
        return refusal;
      }
    }
    return Refuse(
        reason::kWorkloadNotFound,
        "no pod matches spec.selector yet; the pod template is taken from the first matching pod");
  }
  return std::nullopt;
}

Refusal Unsupported(const AcceptanceContext& context) {
  const codec::Json* os = codec::At(*context.pod_template.pod_template, {"spec", "os", "name"});
  if (os != nullptr && os->is_string() && os->get<std::string>() != "linux") {
    return Refuse(reason::kUnsupportedWorkload,
                  "spec.os.name of the pod template is not linux; only Linux pods can be injected");
  }
  return std::nullopt;
}

Refusal NoContainer(const AcceptanceContext& context) {
  if (context.pod_template.factors.container.empty()) {
    const std::string& wanted = context.in.warmup.spec.container;
    return Refuse(reason::kContainerNotFound,
                  wanted.empty()
                      ? std::string("the pod template has no container; add one")
                      : fmt::format("the pod template has no container \"{}\"; set spec.container "
                                    "to one of its containers, or remove spec.container",
                                    wanted));
  }
  if (context.pod_template.factors.image.empty()) {
    return Refuse(reason::kContainerNotFound,
                  fmt::format("container \"{}\" of the pod template has no image; add one",
                              context.pod_template.factors.container));
  }
  return std::nullopt;
}

Refusal Conflict(const AcceptanceContext& context) {
  const codec::Json* spec = codec::At(*context.pod_template.pod_template, {"spec"});
  std::string conflict =
      spec == nullptr ? std::string() : MountConflict(*spec, context.in.settings.root);
  return conflict.empty() ? std::nullopt : Refuse(reason::kVolumeConflict, std::move(conflict));
}

Refusal NoLabels(const AcceptanceContext& context) {
  return InjectionLabels(context).empty()
             ? Refuse(reason::kInvalidSpec,
                      "neither the selector nor the pod template of the workload has labels that "
                      "identify its pods; add a label to metadata.labels of the pod template")
             : std::nullopt;
}

Refusal Overlap(const AcceptanceContext& context) {
  const std::map<std::string, std::string> labels = InjectionLabels(context);
  for (const OtherWarmup& other : context.in.others) {
    const bool same_workload =
        other.workload_ref && other.workload_ref == context.in.warmup.spec.workload_ref;
    const bool same_pods = !other.labels.empty() && (api::HasLabels(labels, other.labels) ||
                                                     api::HasLabels(other.labels, labels));
    if (other.older && (same_workload || same_pods)) {
      return Refuse(
          reason::kOverlapsAnotherWarmup,
          fmt::format("CacheWarmup {} is older and selects the same pods; delete one of the two",
                      other.name));
    }
  }
  return std::nullopt;
}

}  // namespace

Refusal InvalidSpec(const AcceptanceContext& context) {
  if (!context.workload.spec_problem.empty()) {
    return Refuse(reason::kInvalidSpec, context.workload.spec_problem);
  }
  return std::nullopt;
}

Refusal ForbiddenNamespace(const AcceptanceContext& context) {
  const auto& labels = context.in.namespace_labels;
  const auto level = labels.find("pod-security.kubernetes.io/enforce");
  if (level != labels.end() && (level->second == "baseline" || level->second == "restricted")) {
    return Refuse(
        reason::kNamespaceForbidsHostPath,
        fmt::format("namespace {} enforces pod security \"{}\", which forbids hostPath "
                    "volumes; the workload runs without the cache. To use the cache, move the "
                    "workload to a namespace whose label pod-security.kubernetes.io/enforce is "
                    "privileged or unset",
                    context.in.warmup.ns, level->second));
  }
  return std::nullopt;
}

Refusal HardRefusal(const AcceptanceContext& context) {
  using Check = Refusal (*)(const AcceptanceContext&);
  static constexpr std::array<Check, 8> kChecks = {InvalidSpec, NoWorkload, Unsupported,
                                                   NoContainer, Conflict,   ForbiddenNamespace,
                                                   NoLabels,    Overlap};
  for (const Check check : kChecks) {
    if (Refusal refusal = check(context)) {
      return refusal;
    }
  }
  return std::nullopt;
}

}  // namespace cachewarm::plan

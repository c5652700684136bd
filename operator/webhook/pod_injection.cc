// SPDX-License-Identifier: Apache-2.0
#include "operator/webhook/pod_injection.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/api/labels.h"
#include "lib/api/names.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/render/fields.h"
#include "operator/render/injection.h"

namespace cachewarm::webhook {
namespace {

using codec::Json;
using render::Find;
using render::List;
using render::Named;
using render::Text;

// Returns true if the pod meets those conditions for injection that are the same for every warmup.
bool IsEligible(const Json& pod, std::string_view root) {
  const Json* labels = Find(pod, {"metadata", "labels"});
  const Json* spec = Find(pod, {"spec"});
  return labels != nullptr && labels->is_object() && spec != nullptr && spec->is_object() &&
         !labels->contains(std::string(api::kBuilderWarmupLabel)) &&
         render::WhyInjectionSkipped(pod, root).empty();
}

bool ShouldInject(const api::CacheWarmup& warmup, const Json& pod, const api::Labels& labels) {
  const auto label = warmup.labels.find(std::string(api::kInjectLabel));
  if (label == warmup.labels.end() || label->second != "true" ||
      !warmup.status.injection.has_value()) {
    return false;
  }
  const api::Injection& injection = *warmup.status.injection;
  const Json* annotations = Find(pod, {"metadata", "annotations"});
  const bool is_claimed =
      annotations != nullptr && annotations->contains(std::string(api::kWarmupAnnotation));
  return api::HasLabels(labels, injection.labels) &&
         api::HasLabels(codec::Texts(Find(pod, {"spec", "nodeSelector"})),
                        injection.node_selector) &&
         Named(List(pod, {"spec", "containers"}), injection.container) != nullptr &&
         (!is_claimed || Text(*annotations, api::kWarmupAnnotation) == warmup.name);
}

bool IsHeld(const api::Injection& injection, const Json& spec, const api::Labels& labels) {
  const std::vector<std::string>& warm = injection.warm_revisions;
  return injection.gate && Text(spec, "nodeName").empty() &&
         std::find(warm.begin(), warm.end(), api::RevisionOf(labels)) == warm.end();
}

void ApplyInjection(const api::CacheWarmup& warmup, std::string_view root,
                    const api::Labels& labels, Json& pod) {
  const api::Injection& injection = *warmup.status.injection;
  Json& metadata = pod["metadata"];
  render::MakeObject(metadata, "annotations")[std::string(api::kWarmupAnnotation)] = warmup.name;
  render::AddEvictionAnnotation(metadata);
  Json& spec = pod["spec"];
  if (IsHeld(injection, spec, labels)) {
    Json& gates = render::MakeList(spec, "schedulingGates");
    if (Named(gates, api::kSchedulingGate) == nullptr) {
      gates.push_back({{"name", std::string(api::kSchedulingGate)}});
    }
  }
  const std::string path =
      api::CachePath(warmup.ns, warmup.name, warmup.uid, render::RunAs(spec, injection.container));
  render::AddMount(spec, {.container = injection.container,
                          .host_path = fmt::format("{}/{}", root, path),
                          .env = injection.env});
}

}  // namespace

std::string Inject(const std::vector<Warmup>& warmups, std::string_view root, Json& pod) {
  if (!IsEligible(pod, root)) {
    return "";
  }
  const api::Labels labels = codec::Texts(Find(pod, {"metadata", "labels"}));
  const auto found = std::find_if(warmups.begin(), warmups.end(), [&](const Warmup& warmup) {
    return ShouldInject(*warmup, pod, labels);
  });
  if (found == warmups.end()) {
    return "";
  }
  ApplyInjection(**found, root, labels, pod);
  return (*found)->name;
}

}  // namespace cachewarm::webhook

// SPDX-License-Identifier: Apache-2.0
#include "operator/webhook/pod_injection.h"

#include <algorithm>

#include "fmt/format.h"
#include "lib/api/labels.h"
#include "lib/api/names.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/plan/acceptance/injectable.h"
#include "operator/render/injection.h"

namespace cachewarm::webhook {
namespace {

using codec::Json;

// Returns true if the pod meets those conditions for injection that are the same for every warmup.
bool IsEligible(const Json& pod, std::string_view root) {
  const Json* labels = codec::At(pod, {"metadata", "labels"});
  const Json* spec = codec::At(pod, {"spec"});
  return labels != nullptr && labels->is_object() && spec != nullptr && spec->is_object() &&
         !labels->contains(std::string(api::kBuilderWarmupLabel)) &&
         plan::WhyNotInjectable(pod, root).empty();
}

bool ShouldInject(const api::CacheWarmup& warmup, const Json& pod, const api::Labels& labels) {
  const auto label = warmup.labels.find(std::string(api::kInjectLabel));
  if (label == warmup.labels.end() || label->second != "true" ||
      !warmup.status.injection.has_value()) {
    return false;
  }
  const api::Injection& injection = *warmup.status.injection;
  const Json* annotations = codec::At(pod, {"metadata", "annotations"});
  const bool is_claimed =
      annotations != nullptr && annotations->contains(std::string(api::kWarmupAnnotation));
  return api::HasLabels(labels, injection.labels) &&
         api::HasLabels(codec::Texts(codec::At(pod, {"spec", "nodeSelector"})),
                        injection.node_selector) &&
         codec::Named(codec::ListAt(pod, {"spec", "containers"}), injection.container) != nullptr &&
         (!is_claimed || codec::TextAt(*annotations, {api::kWarmupAnnotation}) == warmup.name);
}

bool IsHeld(const api::Injection& injection, const Json& spec, const api::Labels& labels) {
  const std::vector<std::string>& warm = injection.warm_revisions;
  return injection.gate && codec::TextAt(spec, {"nodeName"}).empty() &&
         std::find(warm.begin(), warm.end(), api::RevisionOf(labels)) == warm.end();
}

void ApplyInjection(const api::CacheWarmup& warmup, std::string_view root,
                    const api::Labels& labels, Json& pod) {
  const api::Injection& injection = *warmup.status.injection;
  Json& metadata = pod["metadata"];
  codec::MakeObject(metadata, "annotations")[std::string(api::kWarmupAnnotation)] = warmup.name;
  render::AddEvictionAnnotation(metadata);
  Json& spec = pod["spec"];
  if (IsHeld(injection, spec, labels)) {
    Json& gates = codec::MakeList(spec, "schedulingGates");
    if (codec::Named(gates, api::kSchedulingGate) == nullptr) {
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
  const api::Labels labels = codec::Texts(codec::At(pod, {"metadata", "labels"}));
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

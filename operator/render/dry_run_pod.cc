// SPDX-License-Identifier: Apache-2.0
#include "operator/render/dry_run_pod.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "lib/api/names.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::render {

using codec::Json;

namespace {

// Value of kWarmupAnnotation that is not a valid warmup name. The admission policy skips a pod with
// this value, because the policy's condition `first` accepts only the name of the warmup to inject.
constexpr std::string_view kUnmatchedWarmup = "-";

// Removes fields that are incomplete in a template that was derived from a running pod, because the
// operator stores only some of a pod's fields. With these fields the API server would reject both
// pods of the dry run, which would prove nothing.
void DropIncompleteFields(Json& spec) {
  for (const char* list : {"containers", "initContainers"}) {
    if (!spec.contains(list) || !spec[list].is_array()) {
      continue;
    }
    for (Json& container : spec[list]) {
      const Json* probe = codec::At(container, {"readinessProbe"});
      if (probe != nullptr && probe->empty()) {
        container.erase("readinessProbe");
      }
      if (codec::At(container, {"resources", "claims"}) != nullptr &&
          !spec.contains("resourceClaims")) {
        container["resources"].erase("claims");
      }
    }
  }
  if (!spec.contains("runtimeClassName")) {
    spec.erase("overhead");
  }
}

Json PodOf(const DryRunPodSpec& spec, std::string_view annotation) {
  Json metadata = {{"generateName", "cachewarm-dry-run-"}, {"namespace", spec.warmup.ns}};
  const auto labels = codec::Texts(codec::At(spec.pod_template, {"metadata", "labels"}));
  if (!labels.empty()) {
    metadata["labels"] = labels;
  }
  auto annotations = codec::Texts(codec::At(spec.pod_template, {"metadata", "annotations"}));
  annotations[std::string(api::kWarmupAnnotation)] = std::string(annotation);
  metadata["annotations"] = annotations;
  const Json* found = codec::At(spec.pod_template, {"spec"});
  Json pod_spec = found != nullptr && found->is_object() ? *found : Json::object();
  DropIncompleteFields(pod_spec);
  return {
      {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata}, {"spec", std::move(pod_spec)}};
}

bool IsAddedByServer(const Json& volume) {
  return codec::TextAt(volume, {"name"}).starts_with("kube-api-access-");
}

bool IsCacheVolume(const Json& volume) {
  return codec::TextAt(volume, {"name"}) == api::kVolume;
}

template <typename Drop>
void DropFrom(Json& object, const char* member, const Drop& drop) {
  if (!object.contains(member) || !object[member].is_array()) {
    return;
  }
  Json kept = Json::array();
  for (const Json& each : object[member]) {
    if (!drop(each)) {
      kept.push_back(each);
    }
  }
  if (kept.empty()) {
    object.erase(member);
  } else {
    object[member] = std::move(kept);
  }
}

void CleanContainer(Json& container) {
  const auto added = [](const Json& each) { return IsAddedByServer(each) || IsCacheVolume(each); };
  DropFrom(container, "volumeMounts", added);
  DropFrom(container, "env", [](const Json& each) {
    return codec::TextAt(each, {"value"}).starts_with(std::string(api::kMountPath) + "/");
  });
}

}  // namespace

DryRunPods MakeDryRunPods(const DryRunPodSpec& spec) {
  Json injected = PodOf(spec, spec.warmup.name);
  AddMount(injected["spec"], spec.mount);
  AddEvictionAnnotation(injected["metadata"]);
  if (spec.gate) {
    Json& gates = codec::MakeList(injected["spec"], "schedulingGates");
    if (codec::Named(gates, api::kSchedulingGate) == nullptr) {
      gates.push_back({{"name", std::string(api::kSchedulingGate)}});
    }
  }
  return {.unmodified = std::make_shared<const Json>(PodOf(spec, kUnmatchedWarmup)),
          .injected = std::make_shared<const Json>(std::move(injected))};
}

Json TemplateOf(const Json& pod, const std::string& uid) {
  Json metadata = Json::object();
  auto labels = codec::Texts(codec::At(pod, {"metadata", "labels"}));
  for (const std::string_view revision : api::kRevisionLabels) {
    labels.erase(std::string(revision));
  }
  metadata["labels"] = labels;
  const Json* found = codec::At(pod, {"spec"});
  Json spec = found != nullptr && found->is_object() ? *found : Json::object();
  for (const char* member : {"nodeName", "schedulingGates", "priority", "preemptionPolicy"}) {
    spec.erase(member);
  }
  DropFrom(spec, "volumes", [&uid](const Json& volume) {
    const Json* path = codec::At(volume, {"hostPath", "path"});
    const bool mounts_cache = path != nullptr && path->is_string() &&
                              path->get<std::string>().find("/" + uid + "/") != std::string::npos;
    return IsAddedByServer(volume) || (IsCacheVolume(volume) && mounts_cache);
  });
  for (const char* list : {"containers", "initContainers"}) {
    if (spec.contains(list) && spec[list].is_array()) {
      for (Json& container : spec[list]) {
        CleanContainer(container);
      }
    }
  }
  return {{"metadata", metadata}, {"spec", spec}};
}

}  // namespace cachewarm::render

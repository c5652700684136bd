// SPDX-License-Identifier: Apache-2.0
#include "operator/render/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lib/api/names.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/fingerprint/key.h"
#include "operator/render/affinity.h"

namespace cachewarm::render {

using codec::Json;

namespace {

constexpr size_t kNameBytesMax = 63;
constexpr size_t kKeyLabelBytes = 32;
// Maximum termination grace period of a builder. Short, because a builder serves no traffic and
// another pod may be waiting for its devices.
constexpr int64_t kGraceSecondsMax = 5;
constexpr int64_t kDefaultGraceSeconds = 30;

// Labels that identify a workload's pods by convention. Services and PDBs select by them, so the
// pod of a builder Job does not get them.
constexpr std::string_view kSelectingLabels[] = {
    "app",
    "k8s-app",
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/component",
    "pod-template-hash",
    "controller-revision-hash",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
};

bool Selects(const BuilderJobSpec& spec, const std::string& key) {
  return spec.label_keys.contains(key) ||
         std::find(std::begin(kSelectingLabels), std::end(kSelectingLabels), key) !=
             std::end(kSelectingLabels);
}

Json OwnLabels(const BuilderJobSpec& spec) {
  Json labels = {{std::string(api::kBuilderWarmupLabel), spec.warmup.uid},
                 {std::string(api::kBuilderKeyLabel), BuilderKeyLabelValue(spec.key)}};
  if (!spec.strict_env.empty()) {
    labels[std::string(api::kBuilderProofLabel)] = "true";
  }
  return labels;
}

std::string JobName(std::string_view warmup, const std::string& tail) {
  std::string head(warmup.substr(0, kNameBytesMax - tail.size()));
  std::replace(head.begin(), head.end(), '.', '-');
  return head + tail;
}

Json PodMetadata(const BuilderJobSpec& spec) {
  Json metadata = Json::object();
  Json& labels = codec::MakeObject(metadata, "labels");
  for (const auto& [key, value] :
       codec::Texts(codec::At(spec.pod_template, {"metadata", "labels"}))) {
    if (!Selects(spec, key)) {
      labels[key] = value;
    }
  }
  labels.update(OwnLabels(spec));
  const auto annotations = codec::Texts(codec::At(spec.pod_template, {"metadata", "annotations"}));
  if (!annotations.empty()) {
    metadata["annotations"] = annotations;
  }
  AddEvictionAnnotation(metadata);
  return metadata;
}

Json PodSpec(const BuilderJobSpec& spec) {
  const Json* given = codec::At(spec.pod_template, {"spec"});
  Json pod = given != nullptr && given->is_object() ? *given : Json::object();
  // Drop fields that would tie the copy to the node, host name, gates or priority of the original
  // pod.
  for (const char* member : {"activeDeadlineSeconds", "hostname", "nodeName", "preemptionPolicy",
                             "priority", "schedulingGates", "setHostnameAsFQDN", "subdomain"}) {
    pod.erase(member);
  }
  pod["restartPolicy"] = "Never";
  pod["terminationGracePeriodSeconds"] =
      std::min(codec::IntegerAt(pod, {"terminationGracePeriodSeconds"}, kDefaultGraceSeconds),
               kGraceSecondsMax);
  if (!spec.priority_class.empty()) {
    pod["priorityClassName"] = spec.priority_class;
  }
  codec::MakeList(pod, "readinessGates")
      .push_back({{"conditionType", std::string(api::kBuilderReadinessGate)}});
  const Json* affinity = codec::At(pod, {"affinity"});
  pod["affinity"] = WithHostRules(affinity != nullptr ? *affinity : Json(),
                                  HostRules{.required = spec.hostnames});
  AddMount(pod, spec.mount);
  if (Json* container = codec::Named(codec::MakeList(pod, "containers"), spec.mount.container)) {
    // Keeps the end of the log in the termination message, the only trace of a failed builder.
    // Nearly every template has "File", the API server's default; the message file still comes
    // first.
    (*container)["terminationMessagePolicy"] = "FallbackToLogsOnError";
    SetEnv(spec.strict_env, *container);
  }
  return pod;
}

}  // namespace

std::string BuilderJobName(std::string_view warmup, std::string_view key, int attempt) {
  return JobName(warmup, fmt::format("-{}-{}", fingerprint::Key8(key), attempt));
}

std::string ProofJobName(std::string_view warmup, std::string_view key, int attempt) {
  return JobName(warmup, fmt::format("-{}-{}-proof", fingerprint::Key8(key), attempt));
}

std::string BuilderKeyLabelValue(std::string_view key) {
  return std::string(key.substr(0, kKeyLabelBytes));
}

Json BuilderJob(const BuilderJobSpec& spec) {
  const Json owner = {{"apiVersion", std::string(api::kApiVersion)},
                      {"kind", "CacheWarmup"},
                      {"name", spec.warmup.name},
                      {"uid", spec.warmup.uid},
                      {"controller", true}};
  return {
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata",
       {{"name", spec.strict_env.empty() ? BuilderJobName(spec.warmup.name, spec.key, spec.attempt)
                                         : ProofJobName(spec.warmup.name, spec.key, spec.attempt)},
        {"namespace", spec.warmup.ns},
        {"labels", OwnLabels(spec)},
        {"ownerReferences", Json::array({owner})}}},
      {"spec",
       {{"backoffLimit", 0},
        {"completions", 1},
        {"parallelism", 1},
        {"podReplacementPolicy", "Failed"},
        {"template", {{"metadata", PodMetadata(spec)}, {"spec", PodSpec(spec)}}}}}};
}

}  // namespace cachewarm::render

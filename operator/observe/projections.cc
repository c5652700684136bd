// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/projections.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

#include "lib/api/names.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/object.h"
#include "operator/factors/start_factors.h"

namespace cachewarm::observe {
namespace {

using codec::Json;
using Names = std::initializer_list<std::string_view>;

// Annotations by which Volcano and KAI identify the pods of a group. They are kept although they
// are not cachewarm's. Other schedulers use labels, which are all kept.
constexpr std::array<std::string_view, 2> kGroupAnnotations = {"scheduling.k8s.io/group-name",
                                                               "pod-group-name"};

// Keeps only the named members. Replaces a value that is not an object by an empty object.
void Keep(Json& object, Names names) {
  Json kept = Json::object();
  if (object.is_object()) {
    for (const std::string_view name : names) {
      const auto found = object.find(name);
      if (found != object.end() && !found->is_null()) {
        kept[std::string(name)] = std::move(*found);
      }
    }
  }
  object = std::move(kept);
}

// Applies `each` to the object member `name` if present.
template <typename Function>
void Inside(Json& object, std::string_view name, Function each) {
  if (object.is_object()) {
    const auto found = object.find(name);
    if (found != object.end() && found->is_object()) {
      each(*found);
    }
  }
}

template <typename Function>
void EachOf(Json& object, std::string_view name, Function each) {
  if (object.is_object()) {
    const auto found = object.find(name);
    if (found != object.end() && found->is_array()) {
      std::for_each(found->begin(), found->end(), each);
    }
  }
}

void KeepOurAnnotations(Json& metadata) {
  Inside(metadata, "annotations", [](Json& annotations) {
    Json kept = Json::object();
    const std::string prefix = std::string(api::kGroup) + "/";
    for (auto& [key, value] : annotations.items()) {
      if (key.starts_with(prefix) || std::count(kGroupAnnotations.begin(), kGroupAnnotations.end(),
                                                std::string_view(key)) > 0) {
        kept[key] = std::move(value);
      }
    }
    annotations = std::move(kept);
  });
}

enum class Annotations { kCachewarm, kAll };

void KeepMetadata(Json& object, Annotations annotations) {
  Inside(object, "metadata", [&](Json& metadata) {
    Keep(metadata,
         {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
          "deletionTimestamp", "labels", "annotations", "ownerReferences"});
    if (annotations == Annotations::kCachewarm) {
      KeepOurAnnotations(metadata);
    }
  });
}

// Keeps the user's own mounts at or below the cache path. Injection skips a pod with such a mount,
// and the operator names the mount when it reports the skipped pod.
void KeepConflictingMounts(Json& container) {
  const std::string mount_path = std::string(api::kMountPath) + "/";
  const auto mounts = container.find("volumeMounts");
  if (mounts == container.end() || !mounts->is_array()) {
    return;
  }
  std::erase_if(mounts->get_ref<Json::array_t&>(), [&](Json& mount) {
    return codec::TextAt(mount, {"name"}) == api::kVolume ||
           !(codec::TextAt(mount, {"mountPath"}) + "/").starts_with(mount_path);
  });
  if (mounts->empty()) {
    container.erase(mounts);
  }
}

void KeepContainer(Json& container) {
  Keep(container, {"name", "image", "resources", "restartPolicy", "readinessProbe",
                   "securityContext", "volumeMounts"});
  KeepConflictingMounts(container);
  Inside(container, "securityContext", [](Json& context) { Keep(context, {"runAsUser"}); });
  Inside(container, "readinessProbe", [](Json& probe) { Keep(probe, {}); });
}

void KeepOurVolume(Json& spec) {
  if (const auto volumes = spec.find("volumes"); volumes != spec.end() && volumes->is_array()) {
    std::erase_if(volumes->get_ref<Json::array_t&>(), [](const Json& volume) {
      return codec::TextAt(volume, {"name"}) != api::kVolume;
    });
  }
}

// True if the pod mounts a cache directory of cachewarm.
bool IsInjected(const Json& pod) {
  const Json* volumes = codec::At(pod, {"spec", "volumes"});
  return volumes != nullptr && volumes->is_array() &&
         std::any_of(volumes->begin(), volumes->end(), [](const Json& volume) {
           return codec::TextAt(volume, {"name"}) == api::kVolume &&
                  codec::At(volume, {"hostPath"}) != nullptr;
         });
}

bool IsGated(const Json& pod) {
  const Json& gates = codec::ListAt(pod, {"spec", "schedulingGates"});
  return !gates.empty();
}

// Called for pods without scheduling gates: their affinity can no longer change. Keeps only the
// required node affinity: for a warmup with a selector, the pod template is derived from such a
// pod, and the required node affinity limits the nodes that fit. Drops the preferred node affinity,
// because cachewarm may have added it when it released the pod, and the affinity to other pods,
// which is not read.
void KeepWhereItMayRun(Json& affinity) {
  Keep(affinity, {"nodeAffinity"});
  Inside(affinity, "nodeAffinity",
         [](Json& nodes) { Keep(nodes, {"requiredDuringSchedulingIgnoredDuringExecution"}); });
}

void KeepPodSpec(Json& spec, bool gated) {
  Keep(spec, {"nodeName", "schedulingGates", "nodeSelector", "affinity", "tolerations",
              "containers", "initContainers", "overhead", "resources", "securityContext", "volumes",
              "restartPolicy", "schedulingGroup", "workloadRef", "os"});
  EachOf(spec, "containers", KeepContainer);
  EachOf(spec, "initContainers", KeepContainer);
  Inside(spec, "securityContext", [](Json& context) { Keep(context, {"runAsUser"}); });
  KeepOurVolume(spec);
  if (codec::TextAt(spec, {"restartPolicy"}) == "Always") {
    spec.erase("restartPolicy");
  }
  if (!gated) {
    Inside(spec, "affinity", KeepWhereItMayRun);
  }
}

void KeepContainerStatus(Json& status) {
  Keep(status, {"name", "ready", "started", "restartCount", "state", "lastState"});
}

// Keeps a prefix of the boot ID. Boot IDs are random, so a prefix is enough to distinguish boots.
void KeepNodeFacts(Json& facts) {
  constexpr size_t kBootBytes = 8;
  Keep(facts, {"operatingSystem", "bootID"});
  if (const auto boot = facts.find("bootID"); boot != facts.end() && boot->is_string()) {
    *boot = boot->get<std::string>().substr(0, kBootBytes);
  }
}

void KeepNodeCondition(Json& condition) {
  if (codec::TextAt(condition, {"type"}) == "Ready") {
    Keep(condition, {"type", "status", "lastTransitionTime"});
  } else {
    Keep(condition, {"type", "status"});
  }
}

}  // namespace

void ProjectPod(Json& pod) {
  // A gated pod keeps all annotations: the patch that removes the gate must know whether any exist.
  const bool gated = IsGated(pod);
  Json started = IsInjected(pod) ? factors::StartedContainersOf(pod) : Json();
  Keep(pod, {"apiVersion", "kind", "metadata", "spec", "status"});
  if (!started.is_null()) {
    pod[std::string(factors::kStartedContainers)] = std::move(started);
  }
  KeepMetadata(pod, gated ? Annotations::kAll : Annotations::kCachewarm);
  Inside(pod, "spec", [&](Json& spec) { KeepPodSpec(spec, gated); });
  Inside(pod, "status", [](Json& status) {
    Keep(status,
         {"phase", "conditions", "containerStatuses", "podIP", "reason", "message", "startTime"});
    EachOf(status, "conditions", [](Json& condition) {
      Keep(condition, {"type", "status", "reason", "message", "lastTransitionTime"});
    });
    EachOf(status, "containerStatuses", KeepContainerStatus);
  });
}

void ProjectNode(Json& node) {
  Keep(node, {"apiVersion", "kind", "metadata", "spec", "status"});
  KeepMetadata(node, Annotations::kCachewarm);
  Inside(node, "spec", [](Json& spec) { Keep(spec, {"taints", "unschedulable"}); });
  Inside(node, "status", [](Json& status) {
    Keep(status, {"allocatable", "conditions", "nodeInfo"});
    Inside(status, "nodeInfo", KeepNodeFacts);
    // Drops the heartbeat time, which changes every few minutes and is not read.
    EachOf(status, "conditions", KeepNodeCondition);
  });
}

void ProjectWorkload(Json& workload) {
  Keep(workload, {"apiVersion", "kind", "metadata", "spec", "status"});
  KeepMetadata(workload, Annotations::kCachewarm);
  Inside(workload, "status", [](Json& status) {
    Keep(status, {"observedGeneration", "replicas", "readyReplicas", "availableReplicas",
                  "updatedReplicas", "updateRevision", "currentRevision", "conditions"});
  });
}

void ProjectJob(Json& job) {
  Keep(job, {"apiVersion", "kind", "metadata", "spec", "status"});
  KeepMetadata(job, Annotations::kCachewarm);
  const Json* labels = codec::At(job, {"metadata", "labels"});
  const bool is_builder = labels != nullptr && labels->is_object() &&
                          labels->contains(std::string(api::kBuilderWarmupLabel));
  if (!is_builder && codec::At(job, {"status", "completionTime"}) != nullptr) {
    Inside(job, "spec", [](Json& spec) { Keep(spec, {"selector", "template"}); });
  }
}

void ProjectNamespace(Json& object) {
  Keep(object, {"apiVersion", "kind", "metadata"});
  KeepMetadata(object, Annotations::kCachewarm);
}

void ProjectEvent(Json& event) {
  Keep(event, {"apiVersion", "kind", "metadata", "regarding", "note", "eventTime", "series",
               "deprecatedLastTimestamp"});
  Inside(event, "metadata", [](Json& metadata) {
    Keep(metadata, {"name", "namespace", "uid", "resourceVersion"});
  });
  Inside(event, "regarding", [](Json& regarding) {
    Keep(regarding, {"kind", "namespace", "name", "uid"});
  });
}

void ProjectBudget(Json& budget) {
  Keep(budget, {"apiVersion", "kind", "metadata", "spec", "status"});
  KeepMetadata(budget, Annotations::kCachewarm);
  Inside(budget, "spec", [](Json& spec) { Keep(spec, {"selector"}); });
  Inside(budget, "status", [](Json& status) {
    Keep(status, {"desiredHealthy", "currentHealthy"});
  });
}

void ProjectService(Json& service) {
  const Json* selector = codec::At(service, {"spec", "selector"});
  const kube::ObjectName name = kube::NameOf(service);
  service = {{"metadata", {{"namespace", name.ns}, {"name", name.name}}},
             {"spec", {{"selector", selector != nullptr ? *selector : Json()}}}};
}

void ProjectResourceSlice(Json& slice) {
  Keep(slice, {"apiVersion", "kind", "metadata", "spec"});
  KeepMetadata(slice, Annotations::kCachewarm);
  Inside(slice, "spec", [](Json& spec) {
    Keep(spec, {"driver", "nodeName", "pool", "devices"});
    Inside(spec, "pool", [](Json& pool) { Keep(pool, {"name", "generation"}); });
    EachOf(spec, "devices", [](Json& device) {
      Keep(device, {"attributes"});
      Inside(device, "attributes", [](Json& attributes) {
        Keep(attributes, {"productName", "cudaComputeCapability"});
      });
    });
  });
}

void ProjectOwn(Json& object) {
  Inside(object, "metadata", [](Json& metadata) {
    metadata.erase("managedFields");
    Inside(metadata, "annotations", [](Json& annotations) {
      annotations.erase("kubectl.kubernetes.io/last-applied-configuration");
    });
  });
}

}  // namespace cachewarm::observe

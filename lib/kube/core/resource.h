// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cachewarm::kube {

// One kind of object as the API server addresses it. The string views refer to literals.
struct Resource {
  std::string_view group;  // empty: the core group
  std::string_view version;
  std::string_view plural;  // "pods"
  std::string_view kind;    // "Pod"
  bool namespaced = true;

  // Returns the apiVersion field of an object: "v1", "apps/v1".
  std::string ApiVersion() const;

  friend bool operator==(const Resource&, const Resource&) = default;
};

inline constexpr Resource kPods{"", "v1", "pods", "Pod"};
inline constexpr Resource kNodes{"", "v1", "nodes", "Node", false};
inline constexpr Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline constexpr Resource kServices{"", "v1", "services", "Service"};
inline constexpr Resource kDeployments{"apps", "v1", "deployments", "Deployment"};
inline constexpr Resource kReplicaSets{"apps", "v1", "replicasets", "ReplicaSet"};
inline constexpr Resource kStatefulSets{"apps", "v1", "statefulsets", "StatefulSet"};
inline constexpr Resource kDaemonSets{"apps", "v1", "daemonsets", "DaemonSet"};
inline constexpr Resource kControllerRevisions{"apps", "v1", "controllerrevisions",
                                               "ControllerRevision"};
inline constexpr Resource kJobs{"batch", "v1", "jobs", "Job"};
inline constexpr Resource kPodDisruptionBudgets{"policy", "v1", "poddisruptionbudgets",
                                                "PodDisruptionBudget"};
inline constexpr Resource kCronJobs{"batch", "v1", "cronjobs", "CronJob"};
inline constexpr Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
inline constexpr Resource kEvents{"events.k8s.io", "v1", "events", "Event"};
inline constexpr Resource kMutatingPolicyBindings{"admissionregistration.k8s.io", "v1",
                                                  "mutatingadmissionpolicybindings",
                                                  "MutatingAdmissionPolicyBinding", false};
inline constexpr Resource kMutatingWebhooks{"admissionregistration.k8s.io", "v1",
                                            "mutatingwebhookconfigurations",
                                            "MutatingWebhookConfiguration", false};
inline constexpr Resource kMutatingPolicies{"admissionregistration.k8s.io", "v1",
                                            "mutatingadmissionpolicies", "MutatingAdmissionPolicy",
                                            false};
inline constexpr Resource kSecrets{"", "v1", "secrets", "Secret"};
inline constexpr Resource kCustomResourceDefinitions{
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false};
inline constexpr Resource kCacheWarmups{"cachewarm.io", "v1alpha1", "cachewarmups", "CacheWarmup"};
inline constexpr Resource kNodeCaches{"cachewarm.io", "v1alpha1", "nodecaches", "NodeCache", false};

// Kinds that a cluster may lack: of other projects, and of newer versions of Kubernetes.
inline constexpr Resource kResourceSlices{"resource.k8s.io", "v1", "resourceslices",
                                          "ResourceSlice", false};
inline constexpr Resource kRollouts{"argoproj.io", "v1alpha1", "rollouts", "Rollout"};
inline constexpr Resource kLeaderWorkerSets{"leaderworkerset.x-k8s.io", "v1", "leaderworkersets",
                                            "LeaderWorkerSet"};
inline constexpr Resource kRayClusters{"ray.io", "v1", "rayclusters", "RayCluster"};
inline constexpr Resource kInferenceServices{"serving.kserve.io", "v1beta1", "inferenceservices",
                                             "InferenceService"};
inline constexpr Resource kLlmInferenceServices{"serving.kserve.io", "v1alpha1",
                                                "llminferenceservices", "LLMInferenceService"};

// Returns all resources above.
std::span<const Resource> KnownResources();

// Finds a resource by the apiVersion and kind of an object or a workloadRef; nullptr if it is
// unknown.
const Resource* FindResource(std::string_view api_version, std::string_view kind);

}  // namespace cachewarm::kube

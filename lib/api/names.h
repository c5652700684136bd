// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/api/labels.h"

// Names that occur in the programs, in the manifests and in objects of users.
namespace cachewarm::api {

inline constexpr std::string_view kGroup = "cachewarm.io";
inline constexpr std::string_view kVersion = "v1alpha1";
inline constexpr std::string_view kApiVersion = "cachewarm.io/v1alpha1";

// Label of a CacheWarmup, set by the operator while its pods are injected. The binding of the
// admission policy selects its parameter objects, the CacheWarmups, by this label.
inline constexpr std::string_view kInjectLabel = "cachewarm.io/inject";
// Annotation of an injected pod: name of its warmup. Written by the admission policy.
inline constexpr std::string_view kWarmupAnnotation = "cachewarm.io/warmup";
// Annotation of an injected pod: result ("hit", "builder", ...) and measurements of its first
// start, as one JSON object. Written by the operator.
inline constexpr std::string_view kStartAnnotation = "cachewarm.io/start";
// Annotation of a pod that is held for more than 2 s: the latest time of its release (RFC 3339).
inline constexpr std::string_view kHeldUntilAnnotation = "cachewarm.io/held-until";
// Annotation of a released pod: one of reason::kReleaseReasons.
inline constexpr std::string_view kReleasedAnnotation = "cachewarm.io/released";
// Annotation of a released pod: seconds for which it was held ("3.214").
inline constexpr std::string_view kHeldSecondsAnnotation = "cachewarm.io/held-seconds";
// Labels of a builder Job and its pod: uid of the warmup, and the key that is built.
inline constexpr std::string_view kBuilderWarmupLabel = "cachewarm.io/builder-warmup";
inline constexpr std::string_view kBuilderKeyLabel = "cachewarm.io/builder-key";
// Label of a Job that proves a bundle, and of its pod; the value is "true".
inline constexpr std::string_view kBuilderProofLabel = "cachewarm.io/builder-proof";
// Readiness gate of a builder Job's pod. Its condition is never set, so that no Service sends
// traffic to the pod.
inline constexpr std::string_view kBuilderReadinessGate = "cachewarm.io/serving";

// Startup taints that users set in a node pool: the taint of cachewarm, and the same taint in the
// form that the cluster autoscaler recognises. The operator removes them and never adds them.
inline constexpr std::string_view kWarmingTaints[] = {
    "cachewarm.io/warming", "startup-taint.cluster-autoscaler.kubernetes.io/cachewarm"};

// Condition types of a NodeCache. A condition is added when it is True for the first time.
inline constexpr std::string_view kGpuNotVisible = "GPUNotVisible";
inline constexpr std::string_view kGpuProbeFailed = "GPUProbeFailed";
inline constexpr std::string_view kGpuKindsMixed = "GPUKindsMixed";
inline constexpr std::string_view kGpuLabelsDiffer = "GPULabelsDiffer";
// Annotation of a workload: "true" creates a CacheWarmup for it, "false" prevents that. Other
// annotations (annotations.h) set the spec of that CacheWarmup. Also a label of a Namespace: "true"
// creates a CacheWarmup for every workload that requests an accelerator.
inline constexpr std::string_view kWarmAnnotation = "cachewarm.io/warm";
// Annotation of a CacheWarmup that was created because of a workload's annotations: digest of the
// spec that these annotations request.
inline constexpr std::string_view kRequestedSpecAnnotation = "cachewarm.io/requested-spec";
// Annotation of a CacheWarmup that was created because of a workload's annotations: RFC 3339 time
// at which the operator noticed that nothing requests the CacheWarmup any more.
inline constexpr std::string_view kRemovalRequestedAtAnnotation =
    "cachewarm.io/removal-requested-at";
// Annotation of the CacheWarmup of a deleted Job: RFC 3339 time at which the operator deletes the
// CacheWarmup, unless a Job of the same name requests it again.
inline constexpr std::string_view kExpiresAtAnnotation = "cachewarm.io/expires-at";

// Scheduling gate of a held pod, added by the admission policy.
inline constexpr std::string_view kSchedulingGate = "cachewarm.io/wait-for-cache";
inline constexpr std::string_view kVolume = "cachewarm";
// Mount path of the cache, equal in all pods because compilers store and hash absolute paths.
inline constexpr std::string_view kMountPath = "/var/cache/cachewarm";
inline constexpr std::string_view kDefaultRoot = "/var/lib/cachewarm";

// Server-side-apply field managers.
inline constexpr std::string_view kOperatorManager = "cachewarm-operator";
// Field manager for CacheWarmups that are created because of annotations.
inline constexpr std::string_view kAnnotationsManager = "cachewarm-annotations";
inline constexpr std::string_view kAgentManager = "cachewarm-agent";
// Returns "cw-<uid>": the field manager that owns the entries of one warmup in every
// NodeCache.spec.
std::string WarmupManager(std::string_view warmup_uid);

// Returns the name in a value of kWarmupAnnotation, or "" if no CacheWarmup can have that name.
// The value is untrusted and becomes a key of queues and indexes.
std::string_view WarmupNameIn(std::string_view value);

// Returns the last part of a pod's cache path: "u<uid>", or "image" if the pod sets no user.
std::string RunAsName(std::optional<int64_t> run_as_user);

// Returns "<namespace>/<name>/<uid>/<run-as>": the path of the cache directory that the admission
// policy mounts into a pod, relative to the agent's --root.
std::string CachePath(std::string_view ns, std::string_view name, std::string_view uid,
                      std::string_view run_as);

// Labels that identify the revision of a pod's template; the first one that a pod has is used.
// LeaderWorkerSet has a separate label, because the workers of each of its groups are a StatefulSet
// with a controller-revision-hash of its own.
inline constexpr std::array<std::string_view, 4> kRevisionLabels = {
    "pod-template-hash", "rollouts-pod-template-hash",
    "leaderworkerset.sigs.k8s.io/template-revision-hash", "controller-revision-hash"};

// Returns the value of the first of kRevisionLabels that is present, "none" if none is. The
// admission policy applies the same rule.
std::string RevisionOf(const Labels& labels);

}  // namespace cachewarm::api

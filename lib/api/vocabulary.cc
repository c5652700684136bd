// SPDX-License-Identifier: Apache-2.0
#include "lib/api/vocabulary.h"

#include "lib/api/names.h"
#include "lib/api/reasons.h"

namespace cachewarm::api {
namespace {

constexpr std::string_view kReady = "CacheWarmup, condition Ready";
constexpr std::string_view kWarm = "CacheWarmup, condition Warm";
constexpr std::string_view kDegraded = "CacheWarmup, condition Degraded";
constexpr std::string_view kWorkloadEvent = "workload, event";
constexpr std::string_view kBuild = "CacheWarmup, status.builders and events";
constexpr std::string_view kHarvest = "CacheWarmup, status.harvests and events";
constexpr std::string_view kPodEvent = "Pod, event";
constexpr std::string_view kBundle = "NodeCache, status.warmups[].bundles";
constexpr std::string_view kNodeGpu = "NodeCache, status.conditions";
constexpr std::string_view kNode = "metric cachewarm_startup_taints_removed_total";
constexpr std::string_view kRelease = "Pod, event and annotation cachewarm.io/released";

constexpr ReasonMeaning kReasons[] = {
    {reason::kInjecting, kReady, "New pods of the workload get the cache."},
    {reason::kPaused, kReady, "spec.paused is set: no build, fetch, hold or injection is started."},
    {reason::kWorkloadNotFound, kReady, "spec.workloadRef names an object that does not exist."},
    {reason::kContainerNotFound, kReady, "The pod template has no container named spec.container."},
    {reason::kUnsupportedWorkload, kReady,
     "cachewarm cannot inject this kind of workload or this pod template."},
    {reason::kNamespaceForbidsHostPath, kReady,
     "The namespace enforces a Pod Security Standard that forbids hostPath volumes."},
    {reason::kVolumeConflict, kReady,
     "The pod template already uses the volume name or the mount path of cachewarm."},
    {reason::kInjectionRejected, kReady,
     "In a dry run, the API server rejected the pod with the cache volume, but not without it."},
    {reason::kAdmissionDryRun, kReady, "The dry run of an injected pod has not finished yet."},
    {reason::kPreparingNodes, kReady, "The nodes have not prepared the cache directory yet."},
    {reason::kNoFittingNode, kReady,
     "No node matches the pod's selector, affinity and tolerations."},
    {reason::kDirectoryUnusable, kReady,
     "Too many nodes have no agent or no writable cache directory."},
    {reason::kVolumeRejected, kReady,
     "A kubelet rejected the cache volume; injection is suspended."},
    {reason::kPodsCrashing, kReady,
     "Pods with the cache exit before they are ready; injection is suspended."},
    {reason::kInvalidSpec, kReady, "A field of the spec has a value that cachewarm cannot use."},
    {reason::kNoAdmission, kReady, "Neither the admission policy nor the webhook is installed."},
    {reason::kOverlapsAnotherWarmup, kReady, "An older CacheWarmup selects the same pods."},

    {reason::kWarmupCreated, kWorkloadEvent, "The operator created the CacheWarmup."},
    {reason::kAnnotationRemoved, kWorkloadEvent,
     "The annotation or label that requested the CacheWarmup was removed; the CacheWarmup is "
     "deleted after 10 minutes."},
    {reason::kWarmupDeleted, kWorkloadEvent,
     "The operator deleted the CacheWarmup. If a deleted Job had requested it, the event is about "
     "the CacheWarmup."},
    {reason::kInvalidAnnotation, kWorkloadEvent, "An annotation is unknown or has a wrong value."},
    {reason::kWarmupNameTaken, kWorkloadEvent,
     "The CacheWarmup was not created: one with its name exists, which the workload does not own."},
    {reason::kAlreadyTargeted, kWorkloadEvent,
     "Another CacheWarmup already names the workload in spec.workloadRef."},

    {reason::kDistributed, kWarm, "On every fitting node the bundle of its GPU type is active."},
    {reason::kNoBundle, kWarm, "A GPU type has no bundle, and no build is running for it."},
    {reason::kBuilding, kWarm, "A builder is compiling."},
    {reason::kDistributing, kWarm, "Nodes are fetching a bundle."},

    {reason::kHealthy, kDegraded, "No problem is known."},
    {reason::kBuildFailed, kDegraded, "Builds failed spec.compile.backoffLimit times in a row."},
    {reason::kReleaseRejected, kDegraded,
     "The API server rejects the release of held pods in the namespace, so new pods are not held."},
    {reason::kNodesFailed, kDegraded, "Nodes cannot fetch, verify or activate a bundle."},
    {reason::kStoreError, kDegraded, "The store rejects requests or cannot be reached."},
    {reason::kBundleSuspended, "CacheWarmup, conditions Degraded and Warm; status.builders",
     "Starts with the bundle hung (spec.hangSeconds), or its engine refused it "
     "(spec.compile.proof), so new pods start without it."},
    {reason::kStartHung, "CacheWarmup, event",
     "A pod that started with the bundle was not Ready in time (spec.hangSeconds)."},

    {reason::kBuilderElected, kBuild,
     "A pod was elected as the builder: the files that it compiles become the bundle."},
    {reason::kBuilderLost, kBuild, "The builder's pod or node is gone."},
    {reason::kBuilderRestarted, kBuild,
     "The builder's container restarted before its files were captured."},
    {reason::kBuilderTimeout, kBuild,
     "The builder was not ready, or still wrote files, after spec.compile.timeoutSeconds."},
    {reason::kBuilderPending, kBuild,
     "The builder did not start within spec.compile.pendingSeconds."},
    {reason::kBuilderCrashed, kBuild, "The builder's container exited with an error."},
    {reason::kBuilderJobRejected, kBuild,
     "No builder Job can be created; the message names the cause."},
    {reason::kBuildRequestFailed, kBuild, "A request of spec.compile.requests failed."},
    {reason::kProofStarted, kBuild,
     "A Job starts with the bundle while its engine must not compile (spec.compile.proof)."},
    {reason::kProofFailed, kBuild,
     "The engine refused the bundle (spec.compile.proof); no node gets it."},
    {reason::kNothingToCapture, kBuild,
     "The builder wrote no file that matches spec.caches, or its directory contains damaged files "
     "or was replaced because the node lost power or has other hardware."},
    {reason::kCacheNotSettled, kBuild,
     "The builder's cache directory kept changing, so it was not captured."},
    {reason::kPublishFailed, kBuild, "The bundle could not be pushed to the store."},
    {reason::kCaptured, kBuild, "The builder's cache was captured; status.bundles has the bundle."},
    {reason::kPublished, kBuild, "The bundle is in the store."},
    {reason::kRankNotCaptured, kBuild,
     "A pod of the builder's group was not captured, so the bundle lacks its files."},
    {reason::kTruncatedFile, "agent metric cachewarm_agent_failures_total",
     "A killed compiler left a partially written file, which the agent removed."},

    {reason::kPodHeld, kPodEvent,
     "The pod is held until a node is warm, at the latest until the time that the event names."},
    {reason::kInjectionSkipped, kPodEvent,
     "The pod was created without the cache; the message gives the cause."},
    {reason::kStartedWarm, kPodEvent,
     "The first start of the pod used the cache, as a whole or in part; the message has the "
     "seconds that it took and saved."},
    {reason::kStartedCold, kPodEvent,
     "The pod started on a node that had no bundle for it yet, so that its engine compiled."},
    {reason::kCacheMissed, kPodEvent,
     "The node had the bundle, but the engine did not read it, compiled everything or built the "
     "native code again; the message names the remedy."},

    {reason::kHarvesting, kHarvest, "A node captures units that were compiled after Ready."},
    {reason::kHarvested, kHarvest,
     "The units were added to the bundle, and nodes fetch the larger bundle."},
    {reason::kNothingNew, kHarvest, "The capture added nothing to the bundle."},
    {reason::kHarvestRefused, kHarvest, "Units cannot be harvested; the message gives the cause."},
    {reason::kHarvestFailed, kHarvest,
     "The capture failed; the next harvest follows after harvest.intervalMinutes."},

    {reason::kActive, kBundle, "The bundle is in the directory that pods mount."},
    {reason::kFetchFailed, kBundle, "The bundle could not be downloaded; the agent tries again."},
    {reason::kVerifyFailed, kBundle,
     "The bytes do not match the digest; the bundle is quarantined."},
    {reason::kBundleRejected, kBundle,
     "The bundle exceeds a limit or contains an entry that nodes do not accept."},
    {reason::kSignatureRejected, kBundle, "No trusted key signed the bundle."},
    {reason::kTreeDamaged, kBundle, "A scrub found a changed file; the agent builds a fresh tree."},
    {reason::kOverLimit, kBundle,
     "The bundle does not fit into byteLimit, the size limit of the caches on a node."},
    {reason::kDiskFull, kBundle, "The disk has too little free space for the bundle."},
    {reason::kDiskFailed, kBundle, "Reading or writing the disk failed."},
    {reason::kRootUnusable, "agent metric cachewarm_agent_failures_total",
     "The agent's root directory (--root) cannot be written."},

    {reason::kDriverNotVisible, kNodeGpu,
     "GPUNotVisible: kubelet offers GPUs that the driver does not report to the agent."},
    {reason::kDevicesVisible, kNodeGpu, "GPUNotVisible is False: the agent sees the node's GPUs."},
    {reason::kDriverNotAnswering, kNodeGpu,
     "GPUProbeFailed: the last query of the GPU driver failed or took too long."},
    {reason::kDriverAnswered, kNodeGpu, "GPUProbeFailed is False: the driver answered."},
    {reason::kKindsDiffer, kNodeGpu,
     "GPUKindsMixed: the GPUs of the node differ in model, architecture or MIG profile."},
    {reason::kKindsEqual, kNodeGpu, "GPUKindsMixed is False: the node has one kind of GPU."},
    {reason::kLabelsDiffer, kNodeGpu,
     "GPULabelsDiffer: a label or ResourceSlice of the Node and the driver name different GPUs."},
    {reason::kLabelsAgree, kNodeGpu,
     "GPULabelsDiffer is False: labels, ResourceSlices and driver agree."},

    {reason::kNodeWarm, kNode, "The node has every bundle that its warmups need."},
    {reason::kNodeNoMatchingWarmup, kNode, "No warmup selects the node."},
    {reason::kNodeBundleFailed, kNode, "A bundle failed on the node."},
    {reason::kNodeDeadlineExceeded, kNode,
     "The node was Ready for a minute without becoming warm."},

    {reason::kReleasedWarm, kRelease, "A fitting node is warm."},
    {reason::kReleasedForBuild, kRelease, "The pod was chosen to build a bundle."},
    {reason::kReleasedNoCapacity, kRelease,
     "No fitting node has capacity, and autoscalers add nodes only for released pods."},
    {reason::kReleasedNotWorthWaiting, kRelease,
     "Waiting would take longer than a warm start saves."},
    {reason::kReleasedAtDeadline, kRelease,
     "The pod was held for the maximum time (spec.gate.maxHoldSeconds)."},
    {reason::kReleasedHoldingDisabled, kRelease,
     "The warmup was deleted, is paused, is not Ready, or has gate.mode Never."},
    {reason::kReleasedBelowMinAvailable, kRelease,
     "Fewer pods are available than status.minAvailable requires."},
    {reason::kReleasedRecreate, kRelease,
     "The Deployment's strategy is Recreate: while a new pod is held, no old pod serves."},
    {reason::kReleasedNoSurge, kRelease,
     "The Deployment's maxSurge is 0: while a new pod is held, an old one is missing."},
    {reason::kReleasedInOrder, kRelease,
     "The StatefulSet starts its pods one after the other, so that a hold delays them all."},
    {reason::kReleasedJobDeadline, kRelease,
     "The Job has an activeDeadlineSeconds, which also counts while its pods are held."},
    {reason::kReleasedUnknownGang, kRelease,
     "The pod belongs to a group whose members cachewarm cannot determine."},
    {reason::kReleasedOtherGate, kRelease,
     "Another scheduling gate or Kueue decides when the pod starts."},
    {reason::kReleasedWithGroup, kRelease, "Another pod of its group was released."},
    {reason::kReleasedManually, "Pod, annotation cachewarm.io/released",
     "`cachewarm release` released the pod."},
};

constexpr NameMeaning kNames[] = {
    {kWarmAnnotation, "annotation", "workload", "user",
     "\"true\" warms the workload, \"false\" excludes it."},
    {kWarmAnnotation, "label", "Namespace", "user",
     "\"true\" warms every workload of the namespace that requests an accelerator."},
    {kInjectLabel, "label", "CacheWarmup", "operator",
     "Set while new pods get the cache; the admission policy selects CacheWarmups by it."},
    {kRequestedSpecAnnotation, "annotation", "CacheWarmup", "operator",
     "Digest of the spec that the workload's annotations request."},
    {kRemovalRequestedAtAnnotation, "annotation", "CacheWarmup", "operator",
     "RFC 3339 time from which no annotation or label requests the CacheWarmup."},
    {kExpiresAtAnnotation, "annotation", "CacheWarmup", "operator",
     "RFC 3339 time at which the CacheWarmup of a deleted Job is deleted."},
    {kWarmupAnnotation, "annotation", "Pod", "admission", "Name of the CacheWarmup of the pod."},
    {kSchedulingGate, "scheduling gate", "Pod", "admission", "Holds the pod until it is released."},
    {kHeldUntilAnnotation, "annotation", "Pod", "operator",
     "RFC 3339 time at which a held pod is released at the latest."},
    {kReleasedAnnotation, "annotation", "Pod", "operator, cachewarm release",
     "Reason why the pod was released."},
    {kHeldSecondsAnnotation, "annotation", "Pod", "operator", "Seconds that the pod was held."},
    {kStartAnnotation, "annotation", "Pod", "operator",
     "Result and figures of the pod's first start, as a JSON object."},
    {kBuilderWarmupLabel, "label", "Job, Pod", "operator",
     "uid of the CacheWarmup that the Job builds for."},
    {kBuilderKeyLabel, "label", "Job, Pod", "operator", "Key of the bundle that the Job builds."},
    {kBuilderProofLabel, "label", "Job, Pod", "operator",
     "Always true: the Job proves the bundle of a builder Job (spec.compile.proof)."},
    {kBuilderReadinessGate, "readiness gate", "Pod", "operator",
     "Never set to True, so that Services send no traffic to a builder Job's pod."},
    {kWarmingTaints[0], "taint", "Node", "user; the operator removes it",
     "Startup taint: no pod is scheduled before the node is warm."},
    {kWarmingTaints[1], "taint", "Node", "user; the operator removes it",
     "The same taint, with the prefix that makes the cluster autoscaler ignore it."},
    {kGpuNotVisible, "condition type", "NodeCache", "agent",
     "True if the node offers GPUs that the agent does not see; the node gets no bundle."},
    {kGpuProbeFailed, "condition type", "NodeCache", "agent",
     "True while the GPU driver does not answer; the last known GPU type stays in use."},
    {kGpuKindsMixed, "condition type", "NodeCache", "agent",
     "True if the node has several kinds of GPU; the node gets no bundle."},
    {kGpuLabelsDiffer, "condition type", "NodeCache", "agent",
     "True if labels or ResourceSlices of the Node and the driver name different GPUs; the driver "
     "is used."},
};

}  // namespace

std::span<const ReasonMeaning> ReasonMeanings() {
  return kReasons;
}

std::span<const NameMeaning> NameMeanings() {
  return kNames;
}

}  // namespace cachewarm::api

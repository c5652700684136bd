// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// Reasons of conditions, events, the annotation cachewarm.io/released, metric labels and log lines.
// All are CamelCase; vocabulary.cc has one sentence about each for docs/reference.
namespace cachewarm::api::reason {

// CacheWarmup Ready
inline constexpr std::string_view kInjecting = "Injecting";
inline constexpr std::string_view kPaused = "Paused";
inline constexpr std::string_view kWorkloadNotFound = "WorkloadNotFound";
inline constexpr std::string_view kContainerNotFound = "ContainerNotFound";
inline constexpr std::string_view kUnsupportedWorkload = "UnsupportedWorkload";
inline constexpr std::string_view kNamespaceForbidsHostPath = "NamespaceForbidsHostPath";
inline constexpr std::string_view kVolumeConflict = "VolumeConflict";
inline constexpr std::string_view kInjectionRejected = "InjectionRejected";
inline constexpr std::string_view kAdmissionDryRun = "AdmissionDryRun";
inline constexpr std::string_view kPreparingNodes = "PreparingNodes";
inline constexpr std::string_view kNoFittingNode = "NoFittingNode";
inline constexpr std::string_view kDirectoryUnusable = "DirectoryUnusable";
inline constexpr std::string_view kVolumeRejected = "VolumeRejected";  // rejected by kubelet
inline constexpr std::string_view kPodsCrashing = "PodsCrashing";  // only pods with the cache crash
inline constexpr std::string_view kInvalidSpec = "InvalidSpec";
inline constexpr std::string_view kNoAdmission = "NoAdmission";
inline constexpr std::string_view kOverlapsAnotherWarmup = "OverlapsAnotherWarmup";

// Events about a workload with annotations of cachewarm
inline constexpr std::string_view kWarmupCreated = "WarmupCreated";
inline constexpr std::string_view kAnnotationRemoved = "AnnotationRemoved";
inline constexpr std::string_view kWarmupDeleted = "WarmupDeleted";
inline constexpr std::string_view kInvalidAnnotation = "InvalidAnnotation";
inline constexpr std::string_view kWarmupNameTaken = "WarmupNameTaken";
inline constexpr std::string_view kAlreadyTargeted = "AlreadyTargeted";

// CacheWarmup Warm
inline constexpr std::string_view kDistributed = "Distributed";
inline constexpr std::string_view kNoBundle = "NoBundle";
inline constexpr std::string_view kBuilding = "Building";
inline constexpr std::string_view kDistributing = "Distributing";

// CacheWarmup Degraded
inline constexpr std::string_view kHealthy = "Healthy";
inline constexpr std::string_view kBuildFailed = "BuildFailed";
inline constexpr std::string_view kReleaseRejected = "ReleaseRejected";
inline constexpr std::string_view kNodesFailed = "NodesFailed";
inline constexpr std::string_view kStoreError = "StoreError";
inline constexpr std::string_view kBundleSuspended = "BundleSuspended";  // hangs or is refused

// Builders and captures
inline constexpr std::string_view kBuilderElected = "BuilderElected";
inline constexpr std::string_view kBuilderLost = "BuilderLost";
inline constexpr std::string_view kBuilderRestarted = "BuilderRestarted";
inline constexpr std::string_view kBuilderTimeout = "BuilderTimeout";
inline constexpr std::string_view kBuilderPending = "BuilderPending";
inline constexpr std::string_view kBuilderCrashed = "BuilderCrashed";
inline constexpr std::string_view kBuilderJobRejected = "BuilderJobRejected";
inline constexpr std::string_view kBuildRequestFailed = "BuildRequestFailed";
inline constexpr std::string_view kProofStarted = "ProofStarted";
inline constexpr std::string_view kProofFailed = "ProofFailed";
inline constexpr std::string_view kPodHeld = "PodHeld";
// Event about a CacheWarmup: a pod that started with a bundle is not Ready in time.
inline constexpr std::string_view kStartHung = "StartHung";
// Event about a pod that was created without the cache; sent after its start was counted.
inline constexpr std::string_view kInjectionSkipped = "InjectionSkipped";
// Events about the first start of a pod with the cache; one of them is sent after it was counted.
inline constexpr std::string_view kStartedWarm = "StartedWarm";
inline constexpr std::string_view kStartedCold = "StartedCold";
inline constexpr std::string_view kCacheMissed = "CacheMissed";
inline constexpr std::string_view kCaptured = "Captured";
inline constexpr std::string_view kNothingToCapture = "NothingToCapture";
inline constexpr std::string_view kCacheNotSettled = "CacheNotSettled";
inline constexpr std::string_view kPublishFailed = "PublishFailed";
inline constexpr std::string_view kPublished = "Published";
// The bundle lacks the files of a pod that belongs to the builder's group of pods.
inline constexpr std::string_view kRankNotCaptured = "RankNotCaptured";

// Harvests: status.harvests of a CacheWarmup, and events about it
inline constexpr std::string_view kHarvesting = "Harvesting";
inline constexpr std::string_view kHarvested = "Harvested";
inline constexpr std::string_view kNothingNew = "NothingNew";
inline constexpr std::string_view kHarvestRefused = "HarvestRefused";
inline constexpr std::string_view kHarvestFailed = "HarvestFailed";

// NodeCache bundles and directories
inline constexpr std::string_view kActive = "Active";
inline constexpr std::string_view kFetchFailed = "FetchFailed";
inline constexpr std::string_view kVerifyFailed = "VerifyFailed";
inline constexpr std::string_view kBundleRejected = "BundleRejected";
inline constexpr std::string_view kSignatureRejected = "SignatureRejected";
inline constexpr std::string_view kTreeDamaged = "TreeDamaged";  // found by a scrub
inline constexpr std::string_view kOverLimit = "OverByteLimit";
inline constexpr std::string_view kDiskFull = "DiskFull";
inline constexpr std::string_view kDiskFailed = "DiskFailed";  // any other disk error
inline constexpr std::string_view kRootUnusable = "RootUnusable";
inline constexpr std::string_view kTruncatedFile = "TruncatedFile";  // left by a killed compiler

// NodeCache conditions
inline constexpr std::string_view kDriverNotVisible = "DriverNotVisible";
inline constexpr std::string_view kDevicesVisible = "DevicesVisible";
inline constexpr std::string_view kDriverNotAnswering = "DriverNotAnswering";
inline constexpr std::string_view kDriverAnswered = "DriverAnswered";
inline constexpr std::string_view kKindsDiffer = "KindsDiffer";
inline constexpr std::string_view kKindsEqual = "KindsEqual";
inline constexpr std::string_view kLabelsDiffer = "LabelsDiffer";
inline constexpr std::string_view kLabelsAgree = "LabelsAgree";

// Reasons for removing the startup taint of a node (cachewarm_startup_taints_removed_total)
inline constexpr std::string_view kNodeWarm = "Warm";
inline constexpr std::string_view kNodeNoMatchingWarmup = "NoMatchingWarmup";
inline constexpr std::string_view kNodeBundleFailed = "BundleFailed";
inline constexpr std::string_view kNodeDeadlineExceeded = "DeadlineExceeded";

// Reasons for a release: the only values of the annotation cachewarm.io/released. All except
// ReleasedManually are also reasons of an event about the pod, and values of the label `reason` of
// cachewarm_gate_releases_total, which counts releases by the operator.
inline constexpr std::string_view kReleasedWarm = "ReleasedWarm";
inline constexpr std::string_view kReleasedForBuild = "ReleasedForBuild";
inline constexpr std::string_view kReleasedNoCapacity = "ReleasedNoCapacity";
inline constexpr std::string_view kReleasedNotWorthWaiting = "ReleasedNotWorthWaiting";
inline constexpr std::string_view kReleasedAtDeadline = "ReleasedAtDeadline";
inline constexpr std::string_view kReleasedHoldingDisabled = "ReleasedHoldingDisabled";
inline constexpr std::string_view kReleasedManually = "ReleasedManually";  // by `cachewarm release`
inline constexpr std::string_view kReleasedBelowMinAvailable = "ReleasedBelowMinAvailable";
inline constexpr std::string_view kReleasedRecreate = "ReleasedRecreate";
inline constexpr std::string_view kReleasedNoSurge = "ReleasedNoSurge";
inline constexpr std::string_view kReleasedInOrder = "ReleasedInOrder";
inline constexpr std::string_view kReleasedJobDeadline = "ReleasedJobDeadline";
inline constexpr std::string_view kReleasedUnknownGang = "ReleasedUnknownGang";
inline constexpr std::string_view kReleasedOtherGate = "ReleasedOtherGate";
inline constexpr std::string_view kReleasedWithGroup = "ReleasedWithGroup";

inline constexpr std::string_view kReleaseReasons[] = {kReleasedWarm,
                                                       kReleasedForBuild,
                                                       kReleasedNoCapacity,
                                                       kReleasedNotWorthWaiting,
                                                       kReleasedAtDeadline,
                                                       kReleasedHoldingDisabled,
                                                       kReleasedBelowMinAvailable,
                                                       kReleasedRecreate,
                                                       kReleasedNoSurge,
                                                       kReleasedInOrder,
                                                       kReleasedJobDeadline,
                                                       kReleasedUnknownGang,
                                                       kReleasedOtherGate,
                                                       kReleasedWithGroup,
                                                       kReleasedManually};

}  // namespace cachewarm::api::reason

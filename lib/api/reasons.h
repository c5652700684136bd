// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// One vocabulary for conditions, events, annotations, logs and metric labels.
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
inline constexpr std::string_view kVolumeRejected = "VolumeRejected";  // by a kubelet
inline constexpr std::string_view kPodsCrashing = "PodsCrashing";      // all that have the cache
inline constexpr std::string_view kInvalidSpec = "InvalidSpec";
inline constexpr std::string_view kNoAdmission = "NoAdmission";
inline constexpr std::string_view kOverlapsAnotherWarmup = "OverlapsAnotherWarmup";

// Events on a workload with our annotations
inline constexpr std::string_view kWarmupCreated = "WarmupCreated";
inline constexpr std::string_view kAnnotationRemoved = "AnnotationRemoved";
inline constexpr std::string_view kWarmupDeleted = "WarmupDeleted";
inline constexpr std::string_view kInvalidAnnotation = "InvalidAnnotation";
inline constexpr std::string_view kWarmupNameTaken = "WarmupNameTaken";
inline constexpr std::string_view kAlreadyTargeted = "AlreadyTargeted";  // by a user's own warmup

// CacheWarmup Warm
inline constexpr std::string_view kDistributed = "Distributed";
inline constexpr std::string_view kNoBundle = "NoBundle";
inline constexpr std::string_view kBuilding = "Building";
inline constexpr std::string_view kDistributing = "Distributing";

// CacheWarmup Degraded
inline constexpr std::string_view kHealthy = "Healthy";
inline constexpr std::string_view kBuildFailed = "BuildFailed";
inline constexpr std::string_view kNodesFailed = "NodesFailed";
inline constexpr std::string_view kStoreError = "StoreError";

// Builders and captures
inline constexpr std::string_view kBuilderElected = "BuilderElected";
inline constexpr std::string_view kBuilderLost = "BuilderLost";
inline constexpr std::string_view kBuilderRestarted = "BuilderRestarted";
inline constexpr std::string_view kBuilderTimeout = "BuilderTimeout";
inline constexpr std::string_view kBuilderPending = "BuilderPending";
inline constexpr std::string_view kBuilderCrashed = "BuilderCrashed";
inline constexpr std::string_view kBuilderJobRejected = "BuilderJobRejected";  // no Job may be made
inline constexpr std::string_view kBuildRequestFailed =
    "BuildRequestFailed";  // one of compile.requests
inline constexpr std::string_view kPodHeld = "PodHeld";
// On a pod of the workload that admission did not give the cache, once it is counted: why.
inline constexpr std::string_view kInjectionSkipped = "InjectionSkipped";
inline constexpr std::string_view kCaptured = "Captured";
inline constexpr std::string_view kNothingToCapture = "NothingToCapture";
inline constexpr std::string_view kCacheNotSettled = "CacheNotSettled";
inline constexpr std::string_view kPublishFailed = "PublishFailed";
inline constexpr std::string_view kPublished = "Published";
// A pod of the builder's group that the bundle has to do without.
inline constexpr std::string_view kRankNotCaptured = "RankNotCaptured";

// NodeCache bundles and directories
inline constexpr std::string_view kActive = "Active";
inline constexpr std::string_view kFetchFailed = "FetchFailed";
inline constexpr std::string_view kVerifyFailed = "VerifyFailed";      // not the digest's bytes
inline constexpr std::string_view kBundleRejected = "BundleRejected";  // by policy, for good
inline constexpr std::string_view kSignatureRejected = "SignatureRejected";  // by no trusted key
inline constexpr std::string_view kTreeDamaged = "TreeDamaged";              // found by the scrub
inline constexpr std::string_view kOverLimit = "OverByteLimit";
inline constexpr std::string_view kDiskFull = "DiskFull";
inline constexpr std::string_view kDiskFailed = "DiskFailed";  // of the node, in other ways
inline constexpr std::string_view kRootUnusable = "RootUnusable";
inline constexpr std::string_view kTruncatedFile =
    "TruncatedFile";  // left half-written by a killed engine

// The condition cachewarm.io/Warm of a Node, and why its startup taint was removed
// (cachewarm_startup_taints_removed_total)
inline constexpr std::string_view kNodeWarm = "Warm";
inline constexpr std::string_view kNodeWarming = "Warming";
inline constexpr std::string_view kNodeNoMatchingWarmup = "NoMatchingWarmup";
inline constexpr std::string_view kNodeBundleFailed = "BundleFailed";
inline constexpr std::string_view kNodeAgentNotReady = "AgentNotReady";
inline constexpr std::string_view kNodeDeadlineExceeded = "DeadlineExceeded";

// Why a gate was released: the closed list of what the annotation cachewarm.io/released says. All
// but ReleasedManually are also the reason of an event about the pod, and `reason` of
// cachewarm_gate_releases_total: the operator counts what it lets go.
inline constexpr std::string_view kReleasedWarm = "ReleasedWarm";
inline constexpr std::string_view kReleasedForBuild = "ReleasedForBuild";
inline constexpr std::string_view kReleasedNoCapacity = "ReleasedNoCapacity";
inline constexpr std::string_view kReleasedNotWorthWaiting =
    "ReleasedNotWorthWaiting";  // waiting costs more than it saves
inline constexpr std::string_view kReleasedAtDeadline = "ReleasedAtDeadline";
inline constexpr std::string_view kReleasedHoldingDisabled = "ReleasedHoldingDisabled";
inline constexpr std::string_view kReleasedManually = "ReleasedManually";  // cachewarm release
inline constexpr std::string_view kReleasedBelowMinAvailable = "ReleasedBelowMinAvailable";
inline constexpr std::string_view kReleasedRecreate = "ReleasedRecreate";
inline constexpr std::string_view kReleasedNoSurge = "ReleasedNoSurge";
inline constexpr std::string_view kReleasedInOrder = "ReleasedInOrder";
inline constexpr std::string_view kReleasedJobDeadline = "ReleasedJobDeadline";
inline constexpr std::string_view kReleasedUnknownGang = "ReleasedUnknownGang";
inline constexpr std::string_view kReleasedOtherGate = "ReleasedOtherGate";
inline constexpr std::string_view kReleasedWithGroup =
    "ReleasedWithGroup";  // with another pod of its group

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

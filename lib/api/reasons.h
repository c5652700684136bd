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
inline constexpr std::string_view kNamespaceForbids = "NamespaceForbidsHostPath";
inline constexpr std::string_view kVolumeConflict = "VolumeConflict";
inline constexpr std::string_view kInjectionRefused = "InjectionRefused";
inline constexpr std::string_view kRehearsing = "Rehearsing";
inline constexpr std::string_view kPreparing = "PreparingNodes";
inline constexpr std::string_view kNoFittingNode = "NoFittingNode";
inline constexpr std::string_view kDirectoryUnusable = "DirectoryUnusable";
inline constexpr std::string_view kVolumeRejected = "VolumeRejected";  // by a kubelet
inline constexpr std::string_view kPodsCrash = "PodsCrash";            // all that have the cache
inline constexpr std::string_view kInvalidSpec = "InvalidSpec";
inline constexpr std::string_view kNoAdmission = "NoAdmission";
inline constexpr std::string_view kOverlap = "OverlapsAnotherWarmup";

// Events on a workload with our annotations
inline constexpr std::string_view kWarmupMade = "WarmupMade";
inline constexpr std::string_view kWarmupUnasked = "WarmupUnasked";
inline constexpr std::string_view kWarmupRemoved = "WarmupRemoved";
inline constexpr std::string_view kAnnotationRefused = "AnnotationRefused";
inline constexpr std::string_view kWarmupNameTaken = "WarmupNameTaken";
inline constexpr std::string_view kAlreadyServed = "AlreadyServed";  // by a user's own warmup

// CacheWarmup Warm
inline constexpr std::string_view kDistributed = "Distributed";
inline constexpr std::string_view kNoBundle = "NoBundle";
inline constexpr std::string_view kBuilding = "Building";
inline constexpr std::string_view kDistributing = "Distributing";

// CacheWarmup Degraded
inline constexpr std::string_view kHealthy = "Healthy";
inline constexpr std::string_view kBuildFailed = "BuildFailed";
inline constexpr std::string_view kNodesFailed = "NodesFailed";
inline constexpr std::string_view kStoreRefuses = "StoreRefuses";

// Builders and captures
inline constexpr std::string_view kBuilderElected = "BuilderElected";
inline constexpr std::string_view kBuilderLost = "BuilderLost";
inline constexpr std::string_view kBuilderRestarted = "BuilderRestarted";
inline constexpr std::string_view kBuilderTimeout = "BuilderTimeout";
inline constexpr std::string_view kBuilderPending = "BuilderPending";
inline constexpr std::string_view kBuilderCrashed = "BuilderCrashed";
inline constexpr std::string_view kBuilderRefused = "BuilderRefused";  // no Job may be made
inline constexpr std::string_view kRequestFailed = "RequestFailed";    // one of compile.requests
inline constexpr std::string_view kHeld = "Held";
// On a pod of the workload that admission did not give the cache, once it is counted: why.
inline constexpr std::string_view kLeftAlone = "LeftAlone";
inline constexpr std::string_view kCaptured = "Captured";
inline constexpr std::string_view kNothingToCapture = "NothingToCapture";
inline constexpr std::string_view kNeverSettled = "NeverSettled";
inline constexpr std::string_view kPublishFailed = "PublishFailed";
inline constexpr std::string_view kPublished = "Published";
// A pod of the builder's group that the bundle has to do without.
inline constexpr std::string_view kRankNotCaptured = "RankNotCaptured";

// NodeCache bundles and directories
inline constexpr std::string_view kActive = "Active";
inline constexpr std::string_view kFetchFailed = "FetchFailed";
inline constexpr std::string_view kVerifyFailed = "VerifyFailed";          // not the digest's bytes
inline constexpr std::string_view kBundleRefused = "BundleRefused";        // by policy, for good
inline constexpr std::string_view kSignatureRefused = "SignatureRefused";  // by no trusted key
inline constexpr std::string_view kTreeDamaged = "TreeDamaged";            // found by the scrub
inline constexpr std::string_view kOverLimit = "OverByteLimit";
inline constexpr std::string_view kDiskFull = "DiskFull";
inline constexpr std::string_view kDiskFailed = "DiskFailed";  // of the node, in other ways
inline constexpr std::string_view kRootUnusable = "RootUnusable";
inline constexpr std::string_view kTornFile = "TornFile";  // left half-written by a killed engine

// The condition cachewarm.io/Warm of a Node, and why its startup taint was removed
// (cachewarm_startup_taints_removed_total)
inline constexpr std::string_view kNodeWarm = "Warm";
inline constexpr std::string_view kNodeWarming = "Warming";
inline constexpr std::string_view kNodeNothingFits = "NothingFits";
inline constexpr std::string_view kNodeBundleFailed = "BundleFailed";
inline constexpr std::string_view kNodeAgentNotReady = "AgentNotReady";
inline constexpr std::string_view kNodeDeadline = "Deadline";

// Why a gate was released: the closed list of what the annotation cachewarm.io/released says. All
// but ByHand are also the reason of an event about the pod, and `reason` of
// cachewarm_gate_releases_total: the operator counts what it lets go.
inline constexpr std::string_view kReleasedWarm = "Warm";
inline constexpr std::string_view kReleasedBuilder = "Builder";
inline constexpr std::string_view kReleasedNoRoom = "NoRoom";
inline constexpr std::string_view kReleasedNoGain = "NoGain";  // waiting costs more than it saves
inline constexpr std::string_view kReleasedDeadline = "Deadline";
inline constexpr std::string_view kReleasedWithdrawn = "Withdrawn";
inline constexpr std::string_view kReleasedByHand = "ByHand";  // cachewarm release
inline constexpr std::string_view kReleasedBelowPromise = "BelowPromise";
inline constexpr std::string_view kReleasedRecreate = "Recreate";
inline constexpr std::string_view kReleasedNoSurge = "NoSurge";
inline constexpr std::string_view kReleasedInOrder = "InOrder";
inline constexpr std::string_view kReleasedJobDeadline = "JobDeadline";
inline constexpr std::string_view kReleasedUnknownGang = "UnknownGang";
inline constexpr std::string_view kReleasedOtherGate = "OtherGate";
inline constexpr std::string_view kReleasedGroup = "Group";  // with another pod of its group

inline constexpr std::string_view kReleaseReasons[] = {
    kReleasedWarm,      kReleasedBuilder,   kReleasedNoRoom,       kReleasedNoGain,
    kReleasedDeadline,  kReleasedWithdrawn, kReleasedBelowPromise, kReleasedRecreate,
    kReleasedNoSurge,   kReleasedInOrder,   kReleasedJobDeadline,  kReleasedUnknownGang,
    kReleasedOtherGate, kReleasedGroup,     kReleasedByHand};

}  // namespace cachewarm::api::reason

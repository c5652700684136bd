// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/api/labels.h"

// Every name that two programs, or a program and a manifest, must agree on.
namespace cachewarm::api {

inline constexpr std::string_view kGroup = "cachewarm.io";
inline constexpr std::string_view kVersion = "v1alpha1";
inline constexpr std::string_view kApiVersion = "cachewarm.io/v1alpha1";

// On the CacheWarmup; the admission policy's binding selects its parameters by it. Set by the
// operator while it injects, removed to withdraw.
inline constexpr std::string_view kInjectLabel = "cachewarm.io/inject";
// On an injected pod: the name of its warmup. Written by the admission policy.
inline constexpr std::string_view kWarmupAnnotation = "cachewarm.io/warmup";
// On an injected pod, written by the operator once it knows: how its first start went ("hit",
// "builder", ...) and what was measured, as one JSON object.
inline constexpr std::string_view kStartAnnotation = "cachewarm.io/start";
// On a pod held for more than 2 s: RFC 3339 time at which it is released at the latest.
inline constexpr std::string_view kHeldUntilAnnotation = "cachewarm.io/held-until";
// On a released pod: why (one of the gate reasons of reasons.h).
inline constexpr std::string_view kReleasedAnnotation = "cachewarm.io/released";
// On a released pod: how long it was held, in seconds ("3.214").
inline constexpr std::string_view kHeldSecondsAnnotation = "cachewarm.io/held-seconds";
// On a builder Job's pod and on the Job: the warmup's uid and the key it builds.
inline constexpr std::string_view kBuilderWarmupLabel = "cachewarm.io/builder-warmup";
inline constexpr std::string_view kBuilderKeyLabel = "cachewarm.io/builder-key";
// Readiness gate of a builder Job's pod; nobody ever sets it, so no Service sends it traffic.
inline constexpr std::string_view kBuilderReadinessGate = "cachewarm.io/serving";

// Startup taints that a node pool puts on fresh nodes: ours, and the form by which the cluster
// autoscaler knows one. The operator only ever removes them.
inline constexpr std::string_view kWarmingTaints[] = {
    "cachewarm.io/warming", "startup-taint.cluster-autoscaler.kubernetes.io/cachewarm"};
// Condition of a Node, for node-readiness-controller.
inline constexpr std::string_view kNodeCondition = "cachewarm.io/Warm";
// On a workload, "true" or "false": whether it is to be warmed (annotations.h has what may stand
// beside it). As a label of a Namespace, "true": every workload of it that asks for an accelerator.
inline constexpr std::string_view kWarmAnnotation = "cachewarm.io/warm";
// On a CacheWarmup that was made for such a workload: digest of what was asked for.
inline constexpr std::string_view kRequestedSpecAnnotation = "cachewarm.io/requested-spec";
// On such a CacheWarmup: RFC 3339 time since when nobody asks for it any more.
inline constexpr std::string_view kRemovalRequestedAtAnnotation =
    "cachewarm.io/removal-requested-at";

inline constexpr std::string_view kSchedulingGate = "cachewarm.io/wait-for-cache";
inline constexpr std::string_view kVolume = "cachewarm";
// Where every pod sees its cache: the same for builders and users, because engines store and hash
// absolute paths.
inline constexpr std::string_view kMountPath = "/var/cache/cachewarm";
inline constexpr std::string_view kDefaultRoot = "/var/lib/cachewarm";

// Server-side-apply field managers.
inline constexpr std::string_view kOperatorManager = "cachewarm-operator";
// Of the CacheWarmups that annotations ask for.
inline constexpr std::string_view kAnnotationsManager = "cachewarm-annotations";
inline constexpr std::string_view kAgentManager = "cachewarm-agent";
// "cw-<uid>": owns the entries of one warmup in every NodeCache.spec.
std::string WarmupManager(std::string_view warmup_uid);

// The name that a value of kWarmupAnnotation says; "" for one that no CacheWarmup can have. Anybody
// may write one on a pod, and it becomes keys of queues and indexes.
std::string_view WarmupNameIn(std::string_view value);

// "u<uid>" or "image": the last part of a pod's cache path.
std::string RunAsName(std::optional<int64_t> run_as_user);

// "<namespace>/<name>/<uid>/<run-as>" below the root: what the admission policy mounts.
std::string CachePath(std::string_view ns, std::string_view name, std::string_view uid,
                      std::string_view run_as);

// What tells the pods of one template from those of another, the first that is there. Of a
// LeaderWorkerSet each group's workers are a StatefulSet with a controller-revision-hash of its
// own.
inline constexpr std::array<std::string_view, 4> kRevisionLabels = {
    "pod-template-hash", "rollouts-pod-template-hash",
    "leaderworkerset.sigs.k8s.io/template-revision-hash", "controller-revision-hash"};

// By these labels, else "none". Same rule as the policy.
std::string RevisionOf(const Labels& labels);

}  // namespace cachewarm::api

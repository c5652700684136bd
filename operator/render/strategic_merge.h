// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::render {

// Applies a strategic merge patch to a PodTemplateSpec, as kubectl patch does (apimachinery
// strategicpatch, with the merge keys of core/v1 PodSpec): objects are merged, null removes a
// member, lists of containers, initContainers, volumes, env, ports, volumeMounts, volumeDevices,
// imagePullSecrets, hostAliases, topologySpreadConstraints, resourceClaims are merged by their key
// and what is new is appended; every other list (tolerations, command, args, envFrom, ...) is
// replaced. "$patch: replace" and "$patch: delete" in an object or an element of a merged list, and
// "$retainKeys". INVALID_ARGUMENT, with the path, for any other directive, an element without its
// key, more than 256 elements for one list, and a value of another type than the one in its place;
// `target` is then half changed. Pure.
absl::Status MergeStrategically(codec::Json& target, const codec::Json& patch);

}  // namespace cachewarm::render

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::render {

// Applies a strategic merge patch to a PodTemplateSpec as kubectl patch does (apimachinery
// strategicpatch, with the merge keys of core/v1 PodSpec). Pure.
//  - Merges objects; null removes a member.
//  - Merges the lists containers, initContainers, volumes, env, ports, volumeMounts, volumeDevices,
//    imagePullSecrets, hostAliases, topologySpreadConstraints and resourceClaims by key, and
//    appends new elements.
//  - Replaces every other list (tolerations, command, args, envFrom, ...).
//  - Supports "$patch: replace" and "$patch: delete" in objects and elements of merged lists, and
//    "$retainKeys".
// Errors: INVALID_ARGUMENT, with the path, for any other directive, an element without its key, a
// list of more than 256 elements, or a value whose type differs from the present one. After an
// error, `target` may be partially changed.
absl::Status MergeStrategically(codec::Json& target, const codec::Json& patch);

}  // namespace cachewarm::render

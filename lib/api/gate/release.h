// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "lib/api/kubernetes.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"

// Functions to release held pods. They need no CacheWarmup, so that any client with rights to get
// and patch pods can use them. Pure.
namespace cachewarm::api::gate {

// Maximum of spec.gate.maxHoldSeconds.
inline constexpr Duration kMaxHold = std::chrono::hours(1);

// True if the pod has the scheduling gate of cachewarm.
bool IsHeld(const Pod& pod);

// Returns the time at which a held pod must be released: kHeldUntilAnnotation, or `otherwise` after
// its creation if the annotation is missing or invalid. At most kMaxHold after the creation,
// because anybody may write annotations.
WallTime Deadline(const Pod& pod, Duration otherwise);

// Returns the seconds that a released pod was held, from kHeldSecondsAnnotation; 0 if it is missing
// or not a number from 0 to a day (anybody may write annotations).
double HeldSecondsOf(const Pod& pod);

// Annotations that a release adds to the pod.
struct Note {
  std::string_view reason;  // a reason of reasons.h; annotation kReleasedAnnotation
  double held_seconds = 0;  // annotation kHeldSecondsAnnotation
};

// Decodes only the fields that a release needs: identity, creation time and gates. Used for held
// pods that DecodePod() rejects, because a pod that cannot be decoded must not stay held for ever.
// The result has no annotations: callers see a pod without a warmup and release it.
Pod DecodeGates(const codec::Json& object);

// Returns the JSON patch (RFC 6902) that removes the gate of cachewarm. It tests the pod's uid and
// the index of the gate, so that it fails as a whole (409 or 422) if the pod has changed. NOT_FOUND
// if the pod has no such gate.
absl::StatusOr<codec::Json> ReleasePatch(const Pod& pod, const Note& note);

// Returns `patch` without the operations that write annotations: the API server or a user's policy
// may reject these (annotations are limited to 256 KiB).
codec::Json WithoutAnnotations(const codec::Json& patch);

// Returns the JSON patch that sets one annotation of a held pod. It tests uid and gate like
// ReleasePatch(), so that it fails as a whole on a released pod and never changes a pod that has a
// node. NOT_FOUND if the pod has no gate of cachewarm. The pod must have annotations, because the
// patch does not create their map.
absl::StatusOr<codec::Json> AnnotationPatch(const Pod& pod, std::string_view key,
                                            std::string_view value);

}  // namespace cachewarm::api::gate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/api/kubernetes.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"

// Functions that read the hold of a pod from the pod alone. They need no CacheWarmup, so that any
// client with the right to read pods can use them. Pure.
namespace cachewarm::gate {

// Maximum of spec.gate.maxHoldSeconds.
inline constexpr Duration kMaxHold = std::chrono::hours(1);

// True if the pod has the scheduling gate of cachewarm.
bool IsHeld(const api::Pod& pod);

// Returns the time at which a held pod must be released: kHeldUntilAnnotation, or `otherwise` after
// its creation if the annotation is missing or invalid. At most kMaxHold after the creation,
// because anybody may write annotations.
WallTime Deadline(const api::Pod& pod, Duration otherwise);

// Returns the seconds that a released pod was held, from kHeldSecondsAnnotation; 0 if it is missing
// or not a number from 0 to a day (anybody may write annotations).
double HeldSecondsOf(const api::Pod& pod);

// Decodes only the fields that a release needs: identity, creation time and gates. Used for held
// pods that DecodePod() rejects, because a pod that cannot be decoded must not stay held for ever.
// The result has no annotations: callers see a pod without a warmup and release it.
api::Pod DecodeGates(const codec::Json& object);

}  // namespace cachewarm::gate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "lib/api/kubernetes.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"

// Letting go of a held pod, as anybody may who can read and patch pods: nothing here needs a
// CacheWarmup. Pure.
namespace cachewarm::api::gate {

// No CacheWarmup can ask for a longer hold (maximum of spec.gate.maxHoldSeconds).
inline constexpr Duration kLongestHold = std::chrono::hours(1);

// Our gate is among the pod's scheduling gates.
bool IsHeld(const Pod& pod);

// The time by which a held pod should have been let go: kHeldUntilAnnotation, or `otherwise` after
// its creation where the annotation is missing or unreadable. Never later than kLongestHold after
// the creation, because anybody may write annotations.
WallTime Deadline(const Pod& pod, Duration otherwise);

// How long the pod was held before it was let go, in seconds, as the release noted it; 0 without a
// note, and for one that is no number from 0 to a day: anybody may write annotations.
double NotedHoldSeconds(const Pod& pod);

// What the patch writes down beside the release.
struct Note {
  std::string_view reason;  // of reasons.h; annotation kReleasedAnnotation
  double held_seconds = 0;  // annotation kHeldSecondsAnnotation
};

// What a release needs of a held pod that DecodePod() refuses: who it is, since when, its gates. No
// annotations, so it belongs to no warmup and may not be held. An annotation more than we read, or
// a quantity that we do not understand, must not hold a pod for ever.
Pod DecodeGates(const codec::Json& object);

// The JSON patch (RFC 6902) that removes our gate: it tests the pod's uid and that our gate is
// where it was, so it fails as a whole (409 or 422) when the pod has changed in between. NOT_FOUND
// when the pod has no gate of ours.
absl::StatusOr<codec::Json> ReleasePatch(const Pod& pod, const Note& note);

// `patch` without what it would note on the pod: for an API server, or a policy of the user's, that
// refuses the note (annotations are 256 KiB at most). The same where there was none.
codec::Json WithoutNotes(const codec::Json& patch);

// The JSON patch that sets one annotation of a pod that waits at our gate, with the same tests: it
// fails as a whole on a pod that was let go, and so never changes one that has a node. NOT_FOUND as
// above. The pod must have an annotation already.
absl::StatusOr<codec::Json> NotePatch(const Pod& pod, std::string_view key, std::string_view value);

}  // namespace cachewarm::api::gate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/client/client.h"

// Releases held pods, and writes annotations of held pods, by JSON patches (RFC 6902). Every patch
// tests the pod's uid and the index of the gate, so that it fails as a whole (409 or 422) if the
// pod was replaced, released or has got other gates. No CacheWarmup is needed, so that any client
// with the right to patch pods can use these functions.
namespace cachewarm::gate {

struct PodRelease {
  const api::Pod& pod;
  std::string_view reason;                // of reasons.h; annotation kReleasedAnnotation
  double held_seconds = 0;                // annotation kHeldSecondsAnnotation
  const codec::Json* affinity = nullptr;  // spec.affinity after the release; null: unchanged
  std::string_view manager;               // field manager
};

// Returns the patch that removes the gate of cachewarm; without a reason, it writes no annotation.
// If it changes the affinity, it also tests the present one, so that it fails as a whole (422) if a
// user has changed it meanwhile. NOT_FOUND if the pod has no such gate.
absl::StatusOr<codec::Json> ReleasePatch(const PodRelease& release);

// Returns the patch that sets one annotation of a held pod; it never changes a pod that has a node.
// The pod must already have an annotation, because the patch does not create the map of
// annotations. NOT_FOUND if the pod has no gate of cachewarm.
absl::StatusOr<codec::Json> AnnotationPatch(const api::Pod& pod, std::string_view key,
                                            std::string_view value);

// Returns true if the pod exists and still has the gate of cachewarm, or if that cannot be
// determined.
bool IsStillHeld(kube::Client& client, const api::Pod& pod, std::stop_token stop);

// Releases a held pod; if its annotations are rejected (a user's policy, or the limit of 256 KiB),
// releases it without them. Returns true if this call released the pod, false if the pod is gone,
// replaced, or already released. After an error the pod is still held, or its state is unknown.
// ABORTED if other gates were removed or added, so that the gate has another index than in `pod`.
absl::StatusOr<bool> Release(kube::Client& client, const PodRelease& release, std::stop_token stop);

}  // namespace cachewarm::gate

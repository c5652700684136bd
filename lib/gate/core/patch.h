// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"

// JSON patches for held pods. They need no CacheWarmup, so that any client with the right to patch
// pods can use them. Pure.
namespace cachewarm::gate {

// Annotations that a release adds to the pod.
struct Note {
  std::string_view reason;  // a reason of reasons.h; annotation kReleasedAnnotation
  double held_seconds = 0;  // annotation kHeldSecondsAnnotation
};

// Returns the JSON patch (RFC 6902) that removes the gate of cachewarm. It tests the pod's uid and
// the index of the gate, so that it fails as a whole (409 or 422) if the pod has changed. NOT_FOUND
// if the pod has no such gate.
absl::StatusOr<codec::Json> ReleasePatch(const api::Pod& pod, const Note& note);

// Returns `patch` without the operations that write annotations: the API server or a user's policy
// may reject these (annotations are limited to 256 KiB).
codec::Json WithoutAnnotations(const codec::Json& patch);

// Returns the JSON patch that sets one annotation of a held pod. It tests uid and gate like
// ReleasePatch(), so that it fails as a whole on a released pod and never changes a pod that has a
// node. NOT_FOUND if the pod has no gate of cachewarm. The pod must already have an annotation,
// because the patch does not create the map of annotations.
absl::StatusOr<codec::Json> AnnotationPatch(const api::Pod& pod, std::string_view key,
                                            std::string_view value);

}  // namespace cachewarm::gate

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/codec/json_value.h"
#include "operator/annotations/decide.h"

namespace cachewarm::annotations {

// Returns the CacheWarmup for `request`, with `spec` (from the annotations) and the workloadRef or
// selector. Contains exactly the fields that the operator's field manager owns. `uid` is the uid of
// the present CacheWarmup, empty for a new one. With a uid, the apply fails if the CacheWarmup has
// been replaced by another of the same name.
codec::Json DesiredWarmup(const AnnotationRequest& request, const codec::Json& spec,
                          const std::string& uid);

// True if the annotation kRequestedSpecAnnotation of `present` has the digest of `desired`, and
// every field of the spec still has the desired value. Additional fields and list entries belong to
// users and are ignored.
bool IsUpToDate(const codec::Json& present, const codec::Json& desired);

}  // namespace cachewarm::annotations

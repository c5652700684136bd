// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/codec/json_value.h"
#include "operator/annotations/next_step.h"

namespace cachewarm::annotations {

// Returns the CacheWarmup for `request`, with `spec` (from the annotations) and the workloadRef or
// selector. The result has exactly the fields that field manager kAnnotationsManager owns. Its
// owner is the workload or, for a Job, the namespace, so that it outlives the Job (retention.h).
// `uid` is the uid of the present CacheWarmup, empty for a new one. With a uid, the server-side
// apply of the result fails if the CacheWarmup has been replaced by another of the same name.
codec::Json DesiredWarmup(const AnnotationRequest& request, const codec::Json& spec,
                          const std::string& uid);

// True if `present` has the same digest in the annotation kRequestedSpecAnnotation as `desired`,
// and its spec has every field of the spec of `desired` with the same value. Additional fields and
// list entries of `present` belong to users and are ignored.
bool IsUpToDate(const codec::Json& present, const codec::Json& desired);

}  // namespace cachewarm::annotations

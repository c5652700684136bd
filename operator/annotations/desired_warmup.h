// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/codec/json_value.h"
#include "operator/annotations/decide.h"

namespace cachewarm::annotations {

// The CacheWarmup that `request` wants, with `spec` (of its annotations) beside the workloadRef or
// selector: what the operator's field manager owns of it, and nothing else. `uid` of the present
// one binds the apply to it; empty for a new one.
codec::Json DesiredWarmup(const AnnotationRequest& request, const codec::Json& spec,
                          const std::string& uid);

// `present` is as `desired` says: the same digest, and every field still has the desired value.
// More entries in its lists, and other fields, are the users' own.
bool IsUpToDate(const codec::Json& present, const codec::Json& desired);

}  // namespace cachewarm::annotations

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/codec/json_value.h"
#include "operator/wishes/decide.h"

namespace cachewarm::wishes {

// The CacheWarmup that `asked` wants, with `spec` (of its annotations) beside the workloadRef or
// selector: what the operator's field manager owns of it, and nothing else. `uid` of the present
// one binds the apply to it; empty for a new one.
codec::Json Wanted(const Asked& asked, const codec::Json& spec, const std::string& uid);

// `present` is as `wanted` says: the same digest, and every field still has the wanted value. More
// entries in its lists, and other fields, are the users' own.
bool Holds(const codec::Json& present, const codec::Json& wanted);

}  // namespace cachewarm::wishes

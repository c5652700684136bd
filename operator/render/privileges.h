// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/codec/json_fwd.h"

namespace cachewarm::render {

// Returns the first privilege that a pod of template `after` has and one of `before` has not, as
// "<field>: <what and the remedy>"; "" if there is none. Permission to write a CacheWarmup must not
// give access that the workload's owner did not give to its pods: identity, host namespaces,
// security contexts, Secrets, host directories and claims must not change; a new container has the
// security context of `container`. Volumes of type emptyDir, configMap and downwardAPI may be
// added. Pure.
std::string FindGainedPrivilege(const codec::Json& before, const codec::Json& after,
                                std::string_view container);

}  // namespace cachewarm::render

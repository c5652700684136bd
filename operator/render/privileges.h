// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/codec/json_fwd.h"

namespace cachewarm::render {

// Returns the first privilege that a pod of template `after` has but a pod of template `before`
// does not have, as "<field>: <problem and remedy>"; "" if there is none. A user who may write a
// CacheWarmup must not gain access that the owner of the workload did not give to its pods.
// Therefore identity, host namespaces, security contexts, Secrets, host directories and volume
// claims must not change, and a new container must have the security context of `container`.
// Volumes of type emptyDir, configMap and downwardAPI may be added. Pure.
std::string FindGainedPrivilege(const codec::Json& before, const codec::Json& after,
                                std::string_view container);

}  // namespace cachewarm::render

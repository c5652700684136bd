// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/codec/json_fwd.h"

namespace cachewarm::render {

// The first thing by which a pod of template `after` may do what one of `before` may not, as
// "<field>: <what and the remedy>"; "" when there is none. Who may write a warmup may not thereby
// get what the workload's owner has not given to its pods: identity, host namespaces, security
// contexts, Secrets, host directories and claims stay as they are; a container that is new has the
// security context of `container`. Volumes of emptyDir, configMap and downwardAPI may come. Pure.
std::string FindGainedPrivilege(const codec::Json& before, const codec::Json& after,
                                std::string_view container);

}  // namespace cachewarm::render

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/codec/json_fwd.h"

namespace cachewarm::api {

inline constexpr std::string_view kWarmupCrd = "cachewarmups.cachewarm.io";
inline constexpr std::string_view kNodeCacheCrd = "nodecaches.cachewarm.io";

// Compares a CustomResourceDefinition of the API server with the field tables in lib/api/json.
// Returns the path of the first field that this release reads or writes and that the schema of
// v1alpha1 does not declare, such as "status.starts.recent[].cause"; "" if all fields are declared.
// The API server rejects a server-side apply with an undeclared field and drops the field from
// other writes. `name` is one of the names above. Members of `crd` with an unexpected type count as
// absent. Pure.
std::string FirstMissingField(std::string_view name, const codec::Json& crd);

}  // namespace cachewarm::api

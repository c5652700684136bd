// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/codec/json_fwd.h"

// Checks whether the cache volume can be added to a pod. Pure.
namespace cachewarm::plan {

// Returns why no warmup can be injected into this pod, as a message for users; "" if injection is
// possible. `root` is Settings::root.
std::string WhyNotInjectable(const codec::Json& pod, std::string_view root);

// Returns why the cache volume cannot be added to a pod with this spec, naming the field and the
// remedy; "" if it can.
std::string MountConflict(const codec::Json& pod_spec, std::string_view root);

}  // namespace cachewarm::plan

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "lib/bundle/format.h"

namespace cachewarm::bundle {

// Checks that a machine of this GPU type and CPU class may read the bundle, according to the facts
// in the bundle's config. If the bundle has GPU code, the machine's GPU must run some of it
// (fingerprint::RunsOn). Call before any file of the bundle is used, because the tag of a bundle
// proves nothing about its content. INVALID_ARGUMENT, naming the types of both machines, if the
// bundle does not fit. Pure.
absl::Status CheckFit(const Bundle& bundle, std::string_view gpu_type, std::string_view cpu_class);

}  // namespace cachewarm::bundle

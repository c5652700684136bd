// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/codec/json_fwd.h"

// The admission policy of manifests/admission.yaml for servers that have none: the same conditions
// and the same changes. tests/admission holds the table of cases that runs against both. Pure.
namespace cachewarm::webhook {

using Warmup = std::shared_ptr<const api::CacheWarmup>;

// Changes `pod`, which is about to be created in the namespace of `warmups`, for the first of them
// that takes it, and returns the name of that one; "" and no change when none does. `root` is the
// directory of the agents on every node. Doing it twice changes nothing more.
std::string Inject(const std::vector<Warmup>& warmups, std::string_view root, codec::Json& pod);

}  // namespace cachewarm::webhook

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/codec/json_fwd.h"

// Implements the admission policy (admission.yaml of the chart), with the same conditions and the
// same changes, for API servers without admission policies. tests/admission runs one table of cases
// against both. Pure.
namespace cachewarm::webhook {

using Warmup = std::shared_ptr<const api::CacheWarmup>;

// Injects the first matching warmup of `warmups` into the new `pod` and returns the warmup's name;
// changes nothing and returns "" if none matches. `root` is the agents' directory on every node.
// Idempotent.
std::string Inject(const std::vector<Warmup>& warmups, std::string_view root, codec::Json& pod);

}  // namespace cachewarm::webhook

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "lib/api/cache_warmup.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::plan {

// Returns OK if render::ApplyOverrides() may apply the overrides to the PodTemplateSpec.
// `container` is the one that compiles.
//
// A user who may write a CacheWarmup must not gain access that the owner of the workload did not
// give to its pods. Therefore api::Overrides has no image, volumes, security contexts, service
// account, Secrets or metadata, and a container gets no device (a resource with a "/" in its name)
// that it does not request in the template.
//
// Errors: INVALID_ARGUMENT, naming the field and the remedy, if the template has no such container,
// or if the resources are those of `container` or would add devices. Pure.
absl::Status CheckOverrides(const codec::Json& pod_template, const api::Overrides& overrides,
                            std::string_view container);

}  // namespace cachewarm::plan

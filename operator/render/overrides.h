// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/api/cache_warmup.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::render {

// Returns the PodTemplateSpec with the overrides applied. `container` is the one that compiles.
//  - command, args and env change `container`. A command also removes the template's args, as in
//    Kubernetes a command replaces the entry point and the arguments of the image.
//  - tolerations and nodeSelector are added to those of the template.
//  - resources replace the requests and limits of the named container or init container.
//
// A user who may write a CacheWarmup must not gain access that the owner of the workload did not
// give to its pods. Therefore image, volumes, security contexts, service account, Secrets and
// metadata always stay those of the template, and a container gets no device (a resource with a
// "/" in its name) that it does not request there.
//
// Errors: INVALID_ARGUMENT, naming the field and the remedy, if the template has no such container,
// or if the resources are those of `container` or would add devices. Pure.
absl::StatusOr<codec::Json> ApplyOverrides(const codec::Json& pod_template,
                                           const std::optional<api::Overrides>& overrides,
                                           std::string_view container);

}  // namespace cachewarm::render

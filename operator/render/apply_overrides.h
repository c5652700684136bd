// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lib/api/cache_warmup.h"
#include "lib/codec/json_fwd.h"

namespace cachewarm::render {

// Returns the PodTemplateSpec with the overrides applied, or unchanged if it has no `container`,
// the container that compiles. plan::CheckOverrides() decides whether they may be applied.
//  - command, args and env change `container`. A command also removes the template's args, as in
//    Kubernetes a command replaces the entry point and the arguments of the image.
//  - tolerations and nodeSelector are added to those of the template.
//  - resources replace the requests and limits of the named container or init container.
// Everything else stays as in the template. Pure.
codec::Json ApplyOverrides(const codec::Json& pod_template, const api::Overrides& overrides,
                           std::string_view container);

}  // namespace cachewarm::render

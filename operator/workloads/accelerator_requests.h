// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/codec/json_fwd.h"

namespace cachewarm::workloads {

// True if a container of this PodTemplateSpec requests an accelerator (api::IsAccelerator()).
bool TemplateRequestsAccelerator(const codec::Json& pod_template);

// True if any pod template of this workload, or spec.predictor.{model,<framework>} of an
// InferenceService, requests an accelerator. Requests that only a KServe runtime or preset makes
// are not in the workload's object, so they do not count.
bool RequestsAccelerator(const codec::Json& workload);

}  // namespace cachewarm::workloads

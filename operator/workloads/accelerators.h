// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/codec/json_fwd.h"

namespace cachewarm::workloads {

// True if a container of this PodTemplateSpec requests an accelerator (plan::IsAccelerator()).
bool TemplateRequestsAccelerator(const codec::Json& pod_template);

// True if any pod template of this workload requests an accelerator; for an InferenceService also
// spec.predictor.{model,<framework>}.resources. Resources added by a KServe runtime or preset are
// not visible here.
bool RequestsAccelerator(const codec::Json& workload);

}  // namespace cachewarm::workloads

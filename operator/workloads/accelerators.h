// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/codec/json_fwd.h"

namespace cachewarm::workloads {

// A container of this PodTemplateSpec asks for an accelerator (plan::IsAccelerator()).
bool TemplateRequestsAccelerator(const codec::Json& pod_template);

// A pod of this workload asks for one, as far as its object says: in any of its pod templates, of
// an InferenceService also in spec.predictor.{model,<framework>}.resources. What a runtime or a
// preset of KServe adds is not seen.
bool RequestsAccelerator(const codec::Json& workload);

}  // namespace cachewarm::workloads

// SPDX-License-Identifier: Apache-2.0
#include "operator/workloads/accelerator_requests.h"

#include <algorithm>
#include <string_view>

#include "lib/api/accelerators.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/object.h"

namespace cachewarm::workloads {
namespace {

using codec::At;
using codec::Json;

// True if a container of `pod` requests an accelerator. `pod` is a PodSpec or another object with
// containers and initContainers.
bool PodRequests(const Json* pod) {
  if (pod == nullptr) {
    return false;
  }
  for (const std::string_view list : {"containers", "initContainers"}) {
    const Json& containers = codec::ListAt(*pod, {list});
    if (std::any_of(containers.begin(), containers.end(),
                    [](const Json& each) { return api::AcceleratorsOf(each) > 0; })) {
      return true;
    }
  }
  return false;
}

bool TemplateRequests(const Json* pod_template) {
  return pod_template != nullptr && TemplateRequestsAccelerator(*pod_template);
}

bool AnyGroupRequests(const Json& workload) {
  const Json& groups = codec::ListAt(workload, {"spec", "workerGroupSpecs"});
  return std::any_of(groups.begin(), groups.end(),
                     [](const Json& group) { return TemplateRequests(At(group, {"template"})); });
}

// True if the predictor of an InferenceService requests an accelerator. The predictor is a PodSpec
// with an additional member that is a container: "model" or the name of a framework.
bool PredictorRequests(const Json& workload) {
  const Json* predictor = At(workload, {"spec", "predictor"});
  if (predictor == nullptr || !predictor->is_object()) {
    return false;
  }
  return PodRequests(predictor) ||
         std::any_of(predictor->begin(), predictor->end(), [](const Json& member) {
           return member.is_object() && api::AcceleratorsOf(member) > 0;
         });
}

}  // namespace

bool TemplateRequestsAccelerator(const Json& pod_template) {
  return PodRequests(At(pod_template, {"spec"}));
}

bool RequestsAccelerator(const Json& workload) {
  // template and worker of an LLMInferenceService, in spec and in spec.prefill, are PodSpecs; the
  // templates of the other kinds are PodTemplateSpecs.
  return TemplateRequests(At(workload, {"spec", "template"})) ||
         TemplateRequests(At(workload, {"spec", "jobTemplate", "spec", "template"})) ||
         TemplateRequests(At(workload, {"spec", "leaderWorkerTemplate", "workerTemplate"})) ||
         TemplateRequests(At(workload, {"spec", "leaderWorkerTemplate", "leaderTemplate"})) ||
         TemplateRequests(At(workload, {"spec", "headGroupSpec", "template"})) ||
         AnyGroupRequests(workload) || PredictorRequests(workload) ||
         PodRequests(At(workload, {"spec", "template"})) ||
         PodRequests(At(workload, {"spec", "worker"})) ||
         PodRequests(At(workload, {"spec", "prefill", "template"})) ||
         PodRequests(At(workload, {"spec", "prefill", "worker"}));
}

}  // namespace cachewarm::workloads

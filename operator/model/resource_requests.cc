// SPDX-License-Identifier: Apache-2.0
#include "operator/model/resource_requests.h"

#include "lib/api/kubernetes.h"
#include "lib/codec/json_value.h"

namespace cachewarm::model {

using codec::Json;

api::Resources RequestsOf(const Json& pod_spec) {
  api::Resources requests = api::PodRequests(pod_spec);
  requests["pods"] = 1;
  return requests;
}

}  // namespace cachewarm::model

// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/scheduling/requests.h"

#include <algorithm>

#include "lib/api/kubernetes.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/plan/scheduling/pod_shape.h"

namespace cachewarm::plan {

using codec::Json;

namespace {

constexpr int kAcceleratorsMax = 1024;

}  // namespace

Resources RequestsOf(const Json& pod_spec) {
  Resources requests = api::PodRequests(pod_spec);
  requests["pods"] = 1;
  return requests;
}

int AcceleratorsOf(const Json& container) {
  int64_t sum = 0;
  for (const auto& [name, amount] : api::ContainerRequests(container)) {
    if (IsAccelerator(name)) {
      sum += std::clamp<int64_t>(amount, 0, kAcceleratorsMax);
    }
  }
  if (sum == 0) {
    sum = static_cast<int64_t>(codec::ListAt(container, {"resources", "claims"}).size());
  }
  return static_cast<int>(std::min<int64_t>(sum, kAcceleratorsMax));
}

}  // namespace cachewarm::plan

// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/scheduling/requests.h"

#include <algorithm>
#include <string>

#include "lib/api/kubernetes.h"
#include "lib/codec/json_value.h"
#include "operator/plan/scheduling/pod_shape.h"
#include "operator/render/fields.h"

namespace cachewarm::plan {

using codec::Json;
using render::Find;
using render::List;
using render::Text;

namespace {

constexpr int kAcceleratorsMax = 1024;

int64_t QuantityOf(const std::string& name, const Json& value) {
  const std::string text = value.is_string()           ? value.get<std::string>()
                           : value.is_number_integer() ? std::to_string(value.get<int64_t>())
                                                       : std::string();
  const auto quantity = api::ParseQuantity(text, name == "cpu");
  return quantity.ok() ? *quantity : 0;
}

Resources QuantitiesOf(const Json* object) {
  Resources out;
  if (object != nullptr && object->is_object()) {
    for (const auto& [name, value] : object->items()) {
      out[name] = QuantityOf(name, value);
    }
  }
  return out;
}

Resources ContainerRequests(const Json& container) {
  Resources out = QuantitiesOf(Find(container, {"resources", "requests"}));
  for (const auto& [name, amount] : QuantitiesOf(Find(container, {"resources", "limits"}))) {
    out.emplace(name, amount);
  }
  return out;
}

void Add(Resources& sum, const Resources& more) {
  for (const auto& [name, amount] : more) {
    sum[name] += amount;
  }
}

}  // namespace

Resources RequestsOf(const Json& pod_spec) {
  Resources sum;
  for (const Json& container : List(pod_spec, {"containers"})) {
    Add(sum, ContainerRequests(container));
  }
  Resources largest;
  for (const Json& container : List(pod_spec, {"initContainers"})) {
    const Resources requests = ContainerRequests(container);
    if (Text(container, "restartPolicy") == "Always") {
      Add(sum, requests);
      continue;
    }
    for (const auto& [name, amount] : requests) {
      largest[name] = std::max(largest[name], amount);
    }
  }
  for (const auto& [name, amount] : largest) {
    sum[name] = std::max(sum[name], amount);
  }
  Add(sum, QuantitiesOf(Find(pod_spec, {"overhead"})));
  sum["pods"] = 1;
  return sum;
}

int AcceleratorsOf(const Json& container) {
  int64_t sum = 0;
  for (const auto& [name, amount] : ContainerRequests(container)) {
    if (IsAccelerator(name)) {
      sum += std::clamp<int64_t>(amount, 0, kAcceleratorsMax);
    }
  }
  if (sum == 0) {
    sum = static_cast<int64_t>(List(container, {"resources", "claims"}).size());
  }
  return static_cast<int>(std::min<int64_t>(sum, kAcceleratorsMax));
}

}  // namespace cachewarm::plan

// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/override_rights.h"

#include <fmt/format.h>

#include <string>

#include "lib/api/kubernetes.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::plan {

using codec::Json;

namespace {

absl::Status RefuseOverrides(std::string_view field, const std::string& problem) {
  return absl::InvalidArgumentError(fmt::format("compile.overrides{}: {}", field, problem));
}

int64_t AmountOf(const std::string& resource, const std::string& quantity) {
  const auto amount = api::ParseQuantity(quantity, resource == "cpu");
  return amount.ok() ? *amount : 0;
}

absl::Status CheckDevices(const api::ContainerResources& resources, const Json& container) {
  api::Resources present = api::ContainerRequests(container);
  for (const auto* list : {&resources.requests, &resources.limits}) {
    for (const auto& [resource, quantity] : *list) {
      const int64_t most = present[resource];
      if (resource.find('/') != std::string::npos && AmountOf(resource, quantity) > most) {
        return RefuseOverrides(
            ".resources",
            fmt::format("container \"{}\" must not get {} {}, because its template requests "
                        "{}; lower the amount, or raise it in the workload",
                        resources.container, quantity, resource, most));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckResources(const api::ContainerResources& resources, std::string_view compiles,
                            const Json& pod_template) {
  if (resources.container == compiles) {
    return RefuseOverrides(
        ".resources",
        fmt::format("container \"{}\" compiles the cache, and its resources stay those "
                    "of the workload; remove the entry",
                    compiles));
  }
  for (const char* list : {"containers", "initContainers"}) {
    const Json* container =
        codec::Named(codec::ListAt(pod_template, {"spec", list}), resources.container);
    if (container != nullptr) {
      return CheckDevices(resources, *container);
    }
  }
  return RefuseOverrides(
      ".resources",
      fmt::format("the pod template has no container \"{}\"; correct or remove the entry",
                  resources.container));
}

}  // namespace

absl::Status CheckOverrides(const Json& pod_template, const api::Overrides& overrides,
                            std::string_view container) {
  if (codec::Named(codec::ListAt(pod_template, {"spec", "containers"}), container) == nullptr) {
    return RefuseOverrides(
        "",
        fmt::format("the pod template has no container \"{}\"; correct spec.container", container));
  }
  for (const api::ContainerResources& each : overrides.resources) {
    CW_RETURN_IF_ERROR(CheckResources(each, container, pod_template));
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::plan

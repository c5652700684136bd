// SPDX-License-Identifier: Apache-2.0
#include "operator/render/overrides.h"

#include <fmt/format.h>

#include <string>

#include "absl/status/status.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "operator/render/fields.h"
#include "operator/render/injection.h"

namespace cachewarm::render {

using codec::Json;

namespace {

absl::Status Refuse(std::string_view field, const std::string& problem) {
  return absl::InvalidArgumentError(fmt::format("compile.overrides{}: {}", field, problem));
}

int64_t Amount(const std::string& resource, const std::string& quantity) {
  const auto amount = api::ParseQuantity(quantity, resource == "cpu");
  return amount.ok() ? *amount : 0;
}

absl::Status SetResources(const api::ContainerResources& resources, Json& container) {
  api::Resources before = api::ContainerRequests(container);
  for (const auto* list : {&resources.requests, &resources.limits}) {
    for (const auto& [resource, quantity] : *list) {
      const int64_t most = before[resource];
      if (resource.find('/') != std::string::npos && Amount(resource, quantity) > most) {
        return Refuse(
            ".resources",
            fmt::format("container \"{}\" must not get {} {}, because its template requests "
                        "{}; lower the amount, or raise it in the workload",
                        resources.container, quantity, resource, most));
      }
    }
  }
  Json& present = MakeObject(container, "resources");
  for (const auto& [name, list] :
       {std::pair{"requests", &resources.requests}, std::pair{"limits", &resources.limits}}) {
    present.erase(name);
    if (!list->empty()) {
      present[name] = *list;
    }
  }
  return absl::OkStatus();
}

absl::Status SetResourcesOf(const api::ContainerResources& resources, std::string_view compiles,
                            Json& spec) {
  if (resources.container == compiles) {
    return Refuse(".resources",
                  fmt::format("container \"{}\" compiles the cache, and its resources stay those "
                              "of the workload; remove the entry",
                              compiles));
  }
  for (const char* list : {"containers", "initContainers"}) {
    if (Named(List(spec, {list}), resources.container) != nullptr) {
      return SetResources(resources, *Named(spec[list], resources.container));
    }
  }
  return Refuse(".resources",
                fmt::format("the pod template has no container \"{}\"; correct or remove the entry",
                            resources.container));
}

void SetCommand(const api::Overrides& overrides, Json& container) {
  if (!overrides.command.empty()) {
    container["command"] = overrides.command;
    container.erase("args");
  }
  if (!overrides.args.empty()) {
    container["args"] = overrides.args;
  }
  SetEnv(overrides.env, container);
}

Json Encode(const api::Toleration& toleration) {
  Json out = {{"key", toleration.key}};
  for (const auto& [name, value] :
       {std::pair{"operator", &toleration.op}, std::pair{"value", &toleration.value},
        std::pair{"effect", &toleration.effect}}) {
    if (!value->empty()) {
      out[name] = *value;
    }
  }
  return out;
}

void SetScheduling(const api::Overrides& overrides, Json& spec) {
  for (const api::Toleration& each : overrides.tolerations) {
    MakeList(spec, "tolerations").push_back(Encode(each));
  }
  for (const auto& [label, value] : overrides.node_selector) {
    MakeObject(spec, "nodeSelector")[label] = value;
  }
}

}  // namespace

absl::StatusOr<Json> ApplyOverrides(const Json& pod_template,
                                    const std::optional<api::Overrides>& overrides,
                                    std::string_view container) {
  Json out = pod_template;
  if (!overrides.has_value()) {
    return out;
  }
  if (Named(List(out, {"spec", "containers"}), container) == nullptr) {
    return Refuse(
        "",
        fmt::format("the pod template has no container \"{}\"; correct spec.container", container));
  }
  Json& spec = out["spec"];
  SetCommand(*overrides, *Named(spec["containers"], container));
  SetScheduling(*overrides, spec);
  for (const api::ContainerResources& each : overrides->resources) {
    CW_RETURN_IF_ERROR(SetResourcesOf(each, container, spec));
  }
  return out;
}

}  // namespace cachewarm::render

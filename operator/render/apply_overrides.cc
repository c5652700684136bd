// SPDX-License-Identifier: Apache-2.0
#include "operator/render/apply_overrides.h"

#include <utility>

#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "operator/render/injection.h"

namespace cachewarm::render {

using codec::Json;

namespace {

void SetResources(const api::ContainerResources& resources, Json& container) {
  Json& present = codec::MakeObject(container, "resources");
  for (const auto& [name, list] :
       {std::pair{"requests", &resources.requests}, std::pair{"limits", &resources.limits}}) {
    present.erase(name);
    if (!list->empty()) {
      present[name] = *list;
    }
  }
}

void SetResourcesOf(const api::ContainerResources& resources, Json& spec) {
  for (const char* list : {"containers", "initContainers"}) {
    if (codec::Named(codec::ListAt(spec, {list}), resources.container) != nullptr) {
      SetResources(resources, *codec::Named(spec[list], resources.container));
      return;
    }
  }
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
    codec::MakeList(spec, "tolerations").push_back(Encode(each));
  }
  for (const auto& [label, value] : overrides.node_selector) {
    codec::MakeObject(spec, "nodeSelector")[label] = value;
  }
}

}  // namespace

Json ApplyOverrides(const Json& pod_template, const api::Overrides& overrides,
                    std::string_view container) {
  Json out = pod_template;
  if (codec::Named(codec::ListAt(out, {"spec", "containers"}), container) == nullptr) {
    return out;
  }
  Json& spec = out["spec"];
  SetCommand(overrides, *codec::Named(spec["containers"], container));
  SetScheduling(overrides, spec);
  for (const api::ContainerResources& each : overrides.resources) {
    SetResourcesOf(each, spec);
  }
  return out;
}

}  // namespace cachewarm::render

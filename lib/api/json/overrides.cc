// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/api/json/checks.h"
#include "lib/api/json/limits.h"
#include "lib/api/json/parts.h"
#include "lib/api/json/words.h"
#include "lib/api/json/writer.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::api::json {
namespace {

using codec::Json;
using codec::Reader;

void ReadArguments(Reader& reader, std::string_view name, std::vector<std::string>& out) {
  reader.Read(name, out, kOverrideItemsMax);
  if (std::any_of(out.begin(), out.end(),
                  [](const std::string& each) { return each.size() > kOverrideTextBytes; })) {
    reader.Fail(name, fmt::format("an item is longer than {} bytes", kOverrideTextBytes));
  }
}

void ReadVariable(Reader& reader, EnvVar& out) {
  ReadChecked(reader.Only({"name", "value"}), "name", out.name, kEnvName);
  reader.Read("value", out.value, kOverrideTextBytes);
}

template <size_t N>
void ReadOneOf(Reader& reader, std::string_view name,
               const std::array<std::string_view, N>& allowed, std::string& out) {
  reader.Read(name, out);
  if (!out.empty() && std::find(allowed.begin(), allowed.end(), out) == allowed.end()) {
    reader.Fail(name, fmt::format("expected one of {}", fmt::join(allowed, ", ")));
  }
}

void ReadToleration(Reader& reader, Toleration& out) {
  reader.Only({"key", "operator", "value", "effect"})
      .Require("key")
      .Read("key", out.key, kTaintKeyBytes)
      .Read("value", out.value, kLabelBytes);
  ReadOneOf(reader, "operator", kTolerationOperators, out.op);
  ReadOneOf(reader, "effect", kTaintEffects, out.effect);
  if (out.op == "Exists" && !out.value.empty()) {
    reader.Fail("value", "is only for the operator Equal; remove it");
  }
}

// Reads a Kubernetes ResourceList and keeps the quantities as text.
void ReadQuantities(Reader& reader, std::string_view name,
                    std::map<std::string, std::string>& out) {
  reader.Object(name, [&](Reader& list) {
    const Json& member = *reader.Member(name);
    if (member.size() > kResourceNamesMax) {
      reader.Fail(name, fmt::format("expected at most {} resources", kResourceNamesMax));
    }
    for (const auto& [resource, value] : member.items()) {
      const std::string text = value.is_string()           ? value.get<std::string>()
                               : value.is_number_integer() ? codec::DumpJson(value)
                                                           : std::string();
      const auto quantity = ParseQuantity(text, false);
      if (text.size() > kQuantityBytes || !quantity.ok() || *quantity < 0) {
        list.Fail(resource, "expected a quantity of at least 0, such as 500m, 4 or 16Gi");
      }
      out[resource] = text;
    }
  });
}

void ReadContainerResources(Reader& reader, ContainerResources& out) {
  ReadChecked(reader.Only({"container", "requests", "limits"}), "container", out.container,
              kDnsLabel);
  ReadQuantities(reader, "requests", out.requests);
  ReadQuantities(reader, "limits", out.limits);
}

Json EncodeVariable(const EnvVar& variable) {
  return Writer().Always("name", variable.name).Always("value", variable.value).Take();
}

Json EncodeToleration(const Toleration& toleration) {
  return Writer()
      .Always("key", toleration.key)
      .Put("operator", toleration.op, kLabelBytes)
      .Put("value", toleration.value, kLabelBytes)
      .Put("effect", toleration.effect, kLabelBytes)
      .Take();
}

Json EncodeResources(const ContainerResources& resources) {
  return Writer()
      .Always("container", resources.container)
      .Put("requests", resources.requests)
      .Put("limits", resources.limits)
      .Take();
}

}  // namespace

void ReadOverrides(Reader& reader, Overrides& out) {
  reader.Only({"command", "args", "env", "tolerations", "nodeSelector", "resources"});
  ReadArguments(reader, "command", out.command);
  ReadArguments(reader, "args", out.args);
  reader
      .List("env", kOverrideItemsMax,
            [&](Reader& item) { ReadVariable(item, out.env.emplace_back()); })
      .List("tolerations", kTolerationsMax,
            [&](Reader& item) { ReadToleration(item, out.tolerations.emplace_back()); })
      .Read("nodeSelector", out.node_selector, kSelectorLabelsMax)
      .List("resources", kOverrideContainersMax,
            [&](Reader& item) { ReadContainerResources(item, out.resources.emplace_back()); });
}

Json EncodeOverrides(const Overrides& overrides) {
  return Writer()
      .Put("command", overrides.command, kOverrideItemsMax)
      .Put("args", overrides.args, kOverrideItemsMax)
      .PutPart("env", ListOf(overrides.env, kOverrideItemsMax, EncodeVariable))
      .PutPart("tolerations", ListOf(overrides.tolerations, kTolerationsMax, EncodeToleration))
      .Put("nodeSelector", overrides.node_selector)
      .PutPart("resources", ListOf(overrides.resources, kOverrideContainersMax, EncodeResources))
      .Take();
}

}  // namespace cachewarm::api::json

// SPDX-License-Identifier: Apache-2.0
#include "lib/api/json/overrides.h"

#include "fmt/format.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::api::json {

using codec::Json;
using codec::Reader;

bool IsTolerationOperator(std::string_view text) {
  return text == "Equal" || text == "Exists";
}

bool IsTaintEffect(std::string_view text) {
  return text == "NoSchedule" || text == "PreferNoSchedule" || text == "NoExecute";
}

void CheckVariable(Reader& reader, const EnvVar&) {
  reader.Only({"name", "value"});
}

void CheckToleration(Reader& reader, const Toleration& toleration) {
  reader.Only({"key", "operator", "value", "effect"});
  if (toleration.op == "Exists" && !toleration.value.empty()) {
    reader.Fail("value", "must be empty if operator is Exists; remove value or set operator Equal");
  }
}

void CheckResources(Reader& reader, const ContainerResources&) {
  reader.Only({"container", "requests", "limits"});
}

void CheckOverrides(Reader& reader, const Overrides&) {
  reader.Only({"command", "args", "env", "tolerations", "nodeSelector", "resources"});
}

void ReadQuantities(const Rule& rule, Reader& reader, std::map<std::string, std::string>& out) {
  reader.Object(rule.name, [&](Reader& list) {
    const Json& member = *reader.Member(rule.name);
    if (member.size() > rule.limit.items) {
      reader.Fail(rule.name, fmt::format("expected at most {} resources", rule.limit.items));
    }
    for (const auto& [resource, value] : member.items()) {
      const std::string text = value.is_string()           ? value.get<std::string>()
                               : value.is_number_integer() ? codec::DumpJson(value)
                                                           : std::string();
      const auto quantity = ParseQuantity(text, false);
      if (text.size() > rule.limit.bytes || !quantity.ok() || *quantity < 0) {
        list.Fail(resource, "expected a quantity of at least 0, such as 500m, 4 or 16Gi");
      }
      out[resource] = text;
    }
  });
}

}  // namespace cachewarm::api::json

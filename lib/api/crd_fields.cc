// SPDX-License-Identifier: Apache-2.0
#include "lib/api/crd_fields.h"

#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/api/json/tables.h"
#include "lib/api/names.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::api {
namespace {

using codec::Json;

std::string FirstMissingRow(const std::vector<json::Rule>& rules, const Json& schema,
                            const std::string& path) {
  if (codec::FlagAt(schema, {"x-kubernetes-preserve-unknown-fields"})) {
    return "";
  }
  for (const json::Rule& rule : rules) {
    if (rule.name.empty()) {
      continue;  // a check
    }
    std::string inner = fmt::format("{}.{}", path, rule.name);
    const Json* field = codec::At(schema, {"properties", rule.name});
    if (field == nullptr) {
      return inner;
    }
    const Json* items = codec::At(*field, {"items"});
    std::string missing = FirstMissingRow(rule.shape().fields, items != nullptr ? *items : *field,
                                          items != nullptr ? inner + "[]" : inner);
    if (!missing.empty()) {
      return missing;
    }
  }
  return "";
}

// Returns the schema of v1alpha1; an empty object if the CRD has none.
Json SchemaOf(const Json& crd) {
  for (const Json& version : codec::ListAt(crd, {"spec", "versions"})) {
    if (codec::TextAt(version, {"name"}) == kVersion) {
      const Json* schema = codec::At(version, {"schema", "openAPIV3Schema"});
      return schema == nullptr ? Json::object() : *schema;
    }
  }
  return Json::object();
}

}  // namespace

std::string FirstMissingField(std::string_view name, const codec::Json& crd) {
  using Part = std::pair<std::string, std::vector<json::Rule>>;
  const std::vector<Part> parts =
      name == kWarmupCrd
          ? std::vector<Part>{{"spec", json::RulesOf(json::WarmupSpecFields())},
                              {"status", json::RulesOf(json::WarmupStatusFields())}}
          : std::vector<Part>{{"spec", json::RulesOf(json::NodeCacheSpecFields())},
                              {"status", json::RulesOf(json::NodeCacheStatusFields())}};
  const Json schema = SchemaOf(crd);
  for (const auto& [part, rules] : parts) {
    const Json* declared = codec::At(schema, {"properties", part});
    std::string missing = declared == nullptr ? part : FirstMissingRow(rules, *declared, part);
    if (!missing.empty()) {
      return missing;
    }
  }
  return "";
}

}  // namespace cachewarm::api

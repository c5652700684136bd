// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lib/api/schema.h"

#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "lib/codec/yaml.h"
#include "tests/fakes/source_dir.h"

namespace cachewarm::api {
namespace {

using codec::Json;

bool IsMap(const Json& schema) {
  return schema.contains("additionalProperties");
}

bool KeepsUnknown(const Json& schema) {
  return schema.value("x-kubernetes-preserve-unknown-fields", false);
}

std::string Join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

std::string StringProblem(const std::string& text, const Json& schema) {
  if (text.size() > schema.value("maxLength", SIZE_MAX)) {
    return "too long";
  }
  if (text.size() < schema.value("minLength", size_t{0})) {
    return "too short";
  }
  if (schema.contains("pattern") &&
      !std::regex_search(text, std::regex(schema["pattern"].get<std::string>()))) {
    return "does not match its pattern";
  }
  return "";
}

std::string ScalarProblem(const Json& value, const Json& schema) {
  const auto type = schema.value("type", std::string());
  const bool int_or_string = schema.value("x-kubernetes-int-or-string", false);
  const bool fits =
      (int_or_string && (value.is_string() || value.is_number_integer())) ||
      (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
      (type == "integer" && value.is_number_integer()) || (type == "number" && value.is_number());
  if (!fits) {
    return "is not of type " + type;
  }
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
    return "is not in the enum";
  }
  if (value.is_number() && ((schema.contains("minimum") && value < schema["minimum"]) ||
                            (schema.contains("maximum") && value > schema["maximum"]))) {
    return "is out of range";
  }
  return value.is_string() ? StringProblem(value.get<std::string>(), schema) : "";
}

std::string MembersProblem(const Json& object, const Json& schema, const std::string& path) {
  for (const Json& name : schema.value("required", Json::array())) {
    if (!object.contains(name.get<std::string>())) {
      return Join(path, name.get<std::string>()) + " is required";
    }
  }
  for (const auto& [name, member] : object.items()) {
    const bool known = schema.contains("properties") && schema["properties"].contains(name);
    if (!known && !IsMap(schema) && !KeepsUnknown(schema)) {
      return Join(path, name) + " is unknown";
    }
    if (known || IsMap(schema)) {
      const Json& inner = known ? schema["properties"][name] : schema["additionalProperties"];
      if (std::string problem = Problem(member, inner, Join(path, name)); !problem.empty()) {
        return problem;
      }
    }
  }
  return "";
}

}  // namespace

Json LoadSchema(const std::string& file) {
  std::ifstream in(fakes::SourceDir() + "/crds/" + file);
  std::stringstream text;
  text << in.rdbuf();
  auto crd = codec::ParseYaml(text.str());
  if (!crd.ok()) {
    throw std::runtime_error(file + ": " + crd.status().ToString());
  }
  return (*crd)["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

void VisitSchema(const Json& schema, const std::string& path, const SchemaVisit& visit) {
  visit(path, schema);
  if (schema.contains("items")) {
    VisitSchema(schema["items"], path + "[]", visit);
  }
  if (schema.contains("properties") && !KeepsUnknown(schema)) {
    for (const auto& [name, member] : schema["properties"].items()) {
      VisitSchema(member, Join(path, name), visit);
    }
  }
}

std::set<std::string> SchemaPaths(const Json& schema, const std::string& path) {
  std::set<std::string> paths;
  VisitSchema(schema, path, [&](const std::string& each, const Json&) { paths.insert(each); });
  return paths;
}

std::set<std::string> ObjectPaths(const Json& object, const Json& schema, const std::string& path) {
  std::set<std::string> paths = {path};
  const auto add = [&](const Json& inner, const Json& inner_schema, const std::string& name) {
    paths.merge(ObjectPaths(inner, inner_schema, name));
  };
  if (object.is_array()) {
    for (const Json& item : object) {
      add(item, schema.value("items", Json::object()), path + "[]");
    }
  } else if (object.is_object() && !IsMap(schema) && !KeepsUnknown(schema)) {
    for (const auto& [name, member] : object.items()) {
      const Json properties = schema.value("properties", Json::object());
      add(member, properties.value(name, Json::object()), Join(path, name));
    }
  }
  return paths;
}

std::string Problem(const Json& object, const Json& schema, const std::string& path) {
  const auto type = schema.value("type", std::string());
  if (type == "object") {
    if (!object.is_object() || object.size() > schema.value("maxProperties", SIZE_MAX) ||
        object.size() < schema.value("minProperties", size_t{0})) {
      return path + " is no object of the right size";
    }
    return MembersProblem(object, schema, path);
  }
  if (type == "array") {
    if (!object.is_array() || object.size() > schema.value("maxItems", SIZE_MAX)) {
      return path + " is no list of the right size";
    }
    for (const Json& item : object) {
      if (std::string problem = Problem(item, schema["items"], path + "[]"); !problem.empty()) {
        return problem;
      }
    }
    return "";
  }
  const std::string problem = ScalarProblem(object, schema);
  return problem.empty() ? "" : path + " " + problem;
}

}  // namespace cachewarm::api

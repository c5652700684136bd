// SPDX-License-Identifier: Apache-2.0
#include "operator/render/fields.h"

#include "lib/codec/json_value.h"

namespace cachewarm::render {

using codec::Json;

const Json* Find(const Json& from, std::initializer_list<std::string_view> path) {
  const Json* at = &from;
  for (const std::string_view step : path) {
    if (!at->is_object()) {
      return nullptr;
    }
    const auto member = at->find(std::string(step));
    if (member == at->end() || member->is_null()) {
      return nullptr;
    }
    at = &*member;
  }
  return at;
}

const Json& List(const Json& from, std::initializer_list<std::string_view> path) {
  static const Json none = Json::array();
  const Json* found = Find(from, path);
  return found != nullptr && found->is_array() ? *found : none;
}

std::string Text(const Json& object, std::string_view name) {
  const Json* found = Find(object, {name});
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

bool Flag(const Json& object, std::string_view name) {
  const Json* found = Find(object, {name});
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

int64_t Integer(const Json& object, std::string_view name, int64_t fallback) {
  const Json* found = Find(object, {name});
  return found != nullptr && found->is_number_integer() ? found->get<int64_t>() : fallback;
}

Json& MakeList(Json& object, std::string_view name) {
  Json& member = object[std::string(name)];
  if (!member.is_array()) {
    member = Json::array();
  }
  return member;
}

Json& MakeObject(Json& object, std::string_view name) {
  Json& member = object[std::string(name)];
  if (!member.is_object()) {
    member = Json::object();
  }
  return member;
}

const Json* Named(const Json& list, std::string_view name) {
  for (const Json& each : list) {
    if (each.is_object() && Text(each, "name") == name) {
      return &each;
    }
  }
  return nullptr;
}

Json* Named(Json& list, std::string_view name) {
  for (Json& each : list) {
    if (each.is_object() && Text(each, "name") == name) {
      return &each;
    }
  }
  return nullptr;
}

}  // namespace cachewarm::render

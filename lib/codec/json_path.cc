// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/json_path.h"

#include <utility>

#include "lib/codec/json_value.h"

namespace cachewarm::codec {

const Json* At(const Json& from, JsonPath path) {
  const Json* at = &from;
  for (const std::string_view name : path) {
    if (!at->is_object()) {
      return nullptr;
    }
    const auto member = at->find(name);
    if (member == at->end() || member->is_null()) {
      return nullptr;
    }
    at = &*member;
  }
  return at;
}

std::string TextAt(const Json& from, JsonPath path) {
  const Json* found = At(from, path);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

const Json& ListAt(const Json& from, JsonPath path) {
  static const Json none = Json::array();
  const Json* found = At(from, path);
  return found != nullptr && found->is_array() ? *found : none;
}

bool FlagAt(const Json& from, JsonPath path) {
  const Json* found = At(from, path);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

int64_t IntegerAt(const Json& from, JsonPath path, int64_t fallback) {
  const Json* found = At(from, path);
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
    if (TextAt(each, {"name"}) == name) {
      return &each;
    }
  }
  return nullptr;
}

Json* Named(Json& list, std::string_view name) {
  return const_cast<Json*>(Named(std::as_const(list), name));
}

}  // namespace cachewarm::codec

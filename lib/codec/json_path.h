// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "lib/codec/json_fwd.h"

// Reads and extends JSON objects whose schema is not checked, e.g. pod templates, which users
// write, and objects from the API server. A member that is null or has an unexpected type counts as
// absent. Nothing here throws. (lib/codec/reader.h reports the path of an unexpected member
// instead.) Pure.
namespace cachewarm::codec {

// Names of members, from the outermost to the innermost: {"spec", "nodeName"}.
using JsonPath = std::initializer_list<std::string_view>;

// Returns the value at `path` below `from`; nullptr if there is none. An empty path means `from`.
const Json* At(const Json& from, JsonPath path);
// Return the value at `path` if it has the type; otherwise an empty text, an empty list, false, and
// `fallback`.
std::string TextAt(const Json& from, JsonPath path);
const Json& ListAt(const Json& from, JsonPath path);
bool FlagAt(const Json& from, JsonPath path);
int64_t IntegerAt(const Json& from, JsonPath path, int64_t fallback = 0);

// Return the member `name` of `object`, which must be an object or null. Replace it by an empty
// list or object if it is absent or has another type.
Json& MakeList(Json& object, std::string_view name);
Json& MakeObject(Json& object, std::string_view name);

// Returns the first element of `list` whose member "name" is `name`; nullptr if there is none.
const Json* Named(const Json& list, std::string_view name);
Json* Named(Json& list, std::string_view name);

}  // namespace cachewarm::codec

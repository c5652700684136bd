// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "lib/codec/json_fwd.h"

// Reads pod templates, which users write: a member with an unexpected type counts as absent. The
// dry run reports the API server's validation error for it. Pure.
namespace cachewarm::render {

// Returns the value below `path`; nullptr if a member is absent, null or not an object.
const codec::Json* Find(const codec::Json& from, std::initializer_list<std::string_view> path);
// Returns the list below `path`; an empty list if the value is absent or not a list.
const codec::Json& List(const codec::Json& from, std::initializer_list<std::string_view> path);

std::string Text(const codec::Json& object, std::string_view name);
bool Flag(const codec::Json& object, std::string_view name);
int64_t Integer(const codec::Json& object, std::string_view name, int64_t fallback);

// Returns the list `name` of `object`. Creates an empty list if the member is absent or not a list.
codec::Json& MakeList(codec::Json& object, std::string_view name);
codec::Json& MakeObject(codec::Json& object, std::string_view name);

// Returns the element of `list` whose member "name" is `name`; nullptr if there is none.
const codec::Json* Named(const codec::Json& list, std::string_view name);
codec::Json* Named(codec::Json& list, std::string_view name);

}  // namespace cachewarm::render

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "lib/codec/json_fwd.h"

// Reads pod templates, which users write: a member of another type than expected counts as absent,
// and the API server's own validation (the rehearsal) says what is wrong with it. Pure.
namespace cachewarm::render {

// The value below `path`; nullptr when a step is absent, null or not an object.
const codec::Json* Find(const codec::Json& from, std::initializer_list<std::string_view> path);
// Same; an absent or non-list value gives an empty list.
const codec::Json& List(const codec::Json& from, std::initializer_list<std::string_view> path);

std::string Text(const codec::Json& object, std::string_view name);
bool Flag(const codec::Json& object, std::string_view name);
int64_t Integer(const codec::Json& object, std::string_view name, int64_t fallback);

// The list member `name` of `object`, made when it is absent.
codec::Json& MakeList(codec::Json& object, std::string_view name);
codec::Json& MakeObject(codec::Json& object, std::string_view name);

// The element of `list` whose member "name" is `name`; nullptr when there is none.
const codec::Json* Named(const codec::Json& list, std::string_view name);
codec::Json* Named(codec::Json& list, std::string_view name);

}  // namespace cachewarm::render

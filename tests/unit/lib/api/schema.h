// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>

#include "lib/codec/json_value.h"

// Compares objects with the OpenAPI schema of a CRD. A path is written "spec.caches[].name".
namespace cachewarm::api {

// Returns spec.versions[0].schema.openAPIV3Schema of crds/<file>.
codec::Json LoadSchema(const std::string& file);

// Visits every schema below `schema`, except below members that keep unknown fields.
using SchemaVisit = std::function<void(const std::string& path, const codec::Json& schema)>;
void VisitSchema(const codec::Json& schema, const std::string& path, const SchemaVisit& visit);

// Returns the paths of all members in the schema, each below `path`.
std::set<std::string> SchemaPaths(const codec::Json& schema, const std::string& path);
// Returns the paths of all members of `object`. Merges the elements of lists, skips the contents of
// maps and of members that keep unknown fields.
std::set<std::string> ObjectPaths(const codec::Json& object, const codec::Json& schema,
                                  const std::string& path);

// Returns the first violation of the schema in `object`, or "". Checks types, lengths, counts,
// ranges, enums, patterns and required members.
std::string Problem(const codec::Json& object, const codec::Json& schema, const std::string& path);

}  // namespace cachewarm::api

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>

#include "lib/codec/json_value.h"

// Walks the OpenAPI schema of a CRD and objects beside it. A path is written "spec.caches[].name".
namespace cachewarm::api {

// spec.versions[0].schema.openAPIV3Schema of crds/<file>.
codec::Json LoadSchema(const std::string& file);

// Every schema below `schema` except those under a member that keeps unknown fields.
using SchemaVisit = std::function<void(const std::string& path, const codec::Json& schema)>;
void VisitSchema(const codec::Json& schema, const std::string& path, const SchemaVisit& visit);

// Paths of all members below `path` that the schema knows.
std::set<std::string> SchemaPaths(const codec::Json& schema, const std::string& path);
// Paths of all members of `object`, lists merged; not below maps and `opaque` paths.
std::set<std::string> ObjectPaths(const codec::Json& object, const codec::Json& schema,
                                  const std::string& path);

// The first thing in `object` that the schema would refuse: "" when there is none. Knows types,
// lengths, counts, ranges, enums, patterns and required members.
std::string Problem(const codec::Json& object, const codec::Json& schema, const std::string& path);

}  // namespace cachewarm::api

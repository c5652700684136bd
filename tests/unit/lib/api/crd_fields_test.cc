// SPDX-License-Identifier: Apache-2.0
#include "lib/api/crd_fields.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/lib/api/schema.h"

namespace cachewarm::api {
namespace {

using codec::Json;

struct Definition {
  std::string_view name;
  std::string file;
  std::set<std::string> not_in_a_table;  // by WriteRootSummary()
};

const Definition kDefinitions[] = {
    {kWarmupCrd, "cachewarmups.yaml", {}},
    {kNodeCacheCrd, "nodecaches.yaml", {"status.summary.used", "status.summary.free"}}};

Json CrdWith(const Json& schema, const std::string& version = "v1alpha1") {
  return {{"spec",
           {{"versions",
             Json::array({{{"name", version}, {"schema", {{"openAPIV3Schema", schema}}}}})}}}};
}

// Returns the schema of the field at `path`, such as "status.starts.recent[].cause".
Json& At(Json& schema, const std::string& path) {
  Json* at = &schema;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    std::string name = path.substr(begin, end - begin);
    const bool is_list = name.ends_with("[]");
    at = &(*at)["properties"][is_list ? name.substr(0, name.size() - 2) : name];
    at = is_list ? &(*at)["items"] : at;
    begin = end + 1;
  }
  return *at;
}

void Remove(Json& schema, const std::string& path) {
  const size_t dot = path.rfind('.');
  Json& parent = dot == std::string::npos ? schema : At(schema, path.substr(0, dot));
  EXPECT_EQ(parent["properties"].erase(path.substr(dot + 1)), 1U) << path;
}

TEST(CrdFields, CrdsOfThisReleaseHaveEveryField) {
  for (const Definition& each : kDefinitions) {
    EXPECT_EQ(FirstMissingField(each.name, CrdWith(LoadSchema(each.file))), "");
  }
}

TEST(CrdFields, EachRemovedFieldIsFound) {
  int removed = 0;
  for (const Definition& each : kDefinitions) {
    const Json schema = LoadSchema(each.file);
    for (const std::string part : {"spec", "status"}) {
      for (const std::string& path : SchemaPaths(schema["properties"][part], part)) {
        if (path.ends_with("[]") || each.not_in_a_table.contains(path)) {
          continue;  // the items of a list, which a schema cannot leave out
        }
        Json older = schema;
        Remove(older, path);
        EXPECT_EQ(FirstMissingField(each.name, CrdWith(older)), path);
        ++removed;
      }
    }
  }
  EXPECT_GT(removed, 200);
}

TEST(CrdFields, FirstFieldInTheOrderOfTheTablesIsNamed) {
  Json schema = LoadSchema("cachewarmups.yaml");
  Remove(schema, "status.starts.recent[].cause");
  Remove(schema, "status.conditions");
  EXPECT_EQ(FirstMissingField(kWarmupCrd, CrdWith(schema)), "status.conditions");
  Remove(schema, "spec.compile.proof");
  EXPECT_EQ(FirstMissingField(kWarmupCrd, CrdWith(schema)), "spec.compile.proof");
}

TEST(CrdFields, UnknownFieldsOfTheCrdAreNotCompared) {
  Json schema = LoadSchema("nodecaches.yaml");
  schema["properties"]["status"]["properties"]["later"] = {{"type", "string"}};
  EXPECT_EQ(FirstMissingField(kNodeCacheCrd, CrdWith(schema)), "");
}

TEST(CrdFields, ObjectThatKeepsUnknownFieldsLacksNone) {
  Json schema = LoadSchema("nodecaches.yaml");
  schema["properties"]["status"] = {{"type", "object"},
                                    {"x-kubernetes-preserve-unknown-fields", true}};
  EXPECT_EQ(FirstMissingField(kNodeCacheCrd, CrdWith(schema)), "");
}

TEST(CrdFields, OtherVersionDoesNotCount) {
  const Json schema = LoadSchema("nodecaches.yaml");
  Json crd = CrdWith(schema, "v1beta1");
  EXPECT_EQ(FirstMissingField(kNodeCacheCrd, crd), "spec");
  crd["spec"]["versions"].push_back(CrdWith(schema)["spec"]["versions"][0]);
  EXPECT_EQ(FirstMissingField(kNodeCacheCrd, crd), "");
}

TEST(CrdFields, UnexpectedTypesCountAsMissing) {
  const Json list = Json::array({1, Json(nullptr), "x"});
  for (const Json& crd :
       {Json(), Json("text"), list, Json{{"spec", list}}, Json{{"spec", {{"versions", "all"}}}},
        Json{{"spec", {{"versions", list}}}}, CrdWith(Json(nullptr)), CrdWith(list),
        CrdWith({{"properties", list}}), CrdWith({{"properties", {{"spec", nullptr}}}})}) {
    EXPECT_EQ(FirstMissingField(kNodeCacheCrd, crd), "spec") << crd.dump();
  }
  EXPECT_EQ(FirstMissingField(kNodeCacheCrd,
                              CrdWith({{"properties", {{"spec", {{"properties", "all"}}}}}})),
            "spec.node");
}

}  // namespace
}  // namespace cachewarm::api

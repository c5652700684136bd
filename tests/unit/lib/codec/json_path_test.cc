// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/json_path.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"

namespace cachewarm::codec {
namespace {

const Json kObject = Json::parse(R"({
  "a": {"b": {"c": 3}}, "text": "x", "empty": "", "flag": true, "list": [1], "none": null,
  "number": 7, "fraction": 1.5, "spec": {"text": "y", "none": null}})");

TEST(JsonPath, AtFindsMemberByPath) {
  EXPECT_EQ(*At(kObject, {"a", "b", "c"}), 3);
  EXPECT_EQ(At(kObject, {}), &kObject);
}

struct Lookup {
  const char* name;
  JsonPath path;
  const char* text = "";
  bool flag = false;
  int64_t integer = -1;
  size_t items = 0;
  bool found = true;
};

// Each row is one value; every reader of another type sees it as absent.
TEST(JsonPath, ValueIsReadOnlyAsItsType) {
  const Lookup rows[] = {
      {.name = "text", .path = {"text"}, .text = "x"},
      {.name = "empty text", .path = {"empty"}},
      {.name = "nested text", .path = {"spec", "text"}, .text = "y"},
      {.name = "flag", .path = {"flag"}, .flag = true},
      {.name = "integer", .path = {"number"}, .integer = 7},
      {.name = "fraction", .path = {"fraction"}},
      {.name = "list", .path = {"list"}, .items = 1},
      {.name = "object", .path = {"a", "b"}},
      {.name = "null", .path = {"none"}, .found = false},
      {.name = "nested null", .path = {"spec", "none"}, .found = false},
      {.name = "below null", .path = {"none", "x"}, .found = false},
      {.name = "absent", .path = {"x"}, .found = false},
      {.name = "below absent", .path = {"x", "y"}, .found = false},
      {.name = "below text", .path = {"text", "y"}, .found = false},
      {.name = "below list", .path = {"list", "0"}, .found = false},
  };
  for (const Lookup& row : rows) {
    EXPECT_EQ(At(kObject, row.path) != nullptr, row.found) << row.name;
    EXPECT_EQ(TextAt(kObject, row.path), row.text) << row.name;
    EXPECT_EQ(FlagAt(kObject, row.path), row.flag) << row.name;
    EXPECT_EQ(IntegerAt(kObject, row.path, -1), row.integer) << row.name;
    EXPECT_EQ(ListAt(kObject, row.path).size(), row.items) << row.name;
  }
}

TEST(JsonPath, NothingIsFoundBelowAValueThatIsNoObject) {
  for (const char* text : {"null", "[]", "3", "\"x\"", "true"}) {
    const Json from = Json::parse(text);
    EXPECT_EQ(At(from, {"a"}), nullptr) << text;
    EXPECT_EQ(TextAt(from, {"a", "b"}), "") << text;
    EXPECT_TRUE(ListAt(from, {"a"}).empty()) << text;
  }
}

TEST(JsonPath, MakeReplacesOnlyMembersOfAnotherType) {
  Json object = {{"list", {1}}, {"text", "x"}, {"object", {{"k", 1}}}};
  MakeList(object, "list").push_back(2);
  MakeList(object, "text").push_back(3);
  MakeList(object, "new");
  MakeObject(object, "object")["l"] = 2;
  MakeObject(object, "other");
  EXPECT_EQ(object, Json::parse(R"({"list": [1, 2], "text": [3], "new": [],
                                    "object": {"k": 1, "l": 2}, "other": {}})"));
  Json null;
  MakeObject(null, "a");
  EXPECT_EQ(null, Json::parse(R"({"a": {}})"));
}

TEST(JsonPath, NamedFindsTheFirstElementOfThatName) {
  Json list = Json::parse(R"(["a", {"name": 1}, {"name": "a", "n": 1}, {"name": "a", "n": 2}])");
  EXPECT_EQ((*Named(std::as_const(list), "a"))["n"], 1);
  (*Named(list, "a"))["n"] = 5;
  EXPECT_EQ(list[2]["n"], 5);
  EXPECT_EQ(Named(list, "b"), nullptr);
  EXPECT_EQ(Named(Json(), "a"), nullptr);
}

}  // namespace
}  // namespace cachewarm::codec

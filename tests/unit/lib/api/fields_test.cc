// SPDX-License-Identifier: Apache-2.0
// Compares each row of the field tables in lib/api/json with its field in crds/.
#include "lib/api/json/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lib/api/json/tables.h"
#include "tests/unit/lib/api/schema.h"

namespace cachewarm::api::json {
namespace {

using codec::Json;

struct Resource {
  std::string path;  // "CacheWarmup.spec"
  Json schema;
  std::vector<Rule> rules;
};

std::vector<Resource> Resources() {
  const Json warmup = LoadSchema("cachewarmups.yaml")["properties"];
  const Json node = LoadSchema("nodecaches.yaml")["properties"];
  return {{"CacheWarmup.spec", warmup["spec"], RulesOf(WarmupSpecFields())},
          {"CacheWarmup.status", warmup["status"], RulesOf(WarmupStatusFields())},
          {"NodeCache.spec", node["spec"], RulesOf(NodeCacheSpecFields())},
          {"NodeCache.status", node["status"], RulesOf(NodeCacheStatusFields())}};
}

// Rows with a reader and a writer of their own, which know no limits of the fields inside.
const std::set<std::string> kOwnReader = {"CacheWarmup.spec.template", "NodeCache.status.summary"};

// Lists whose items only the API server compares with a pattern, and quantities, which have a
// reader of their own.
const std::set<std::string> kItemsWithoutPattern = {
    "CacheWarmup.spec.gpuTypes[]",
    "CacheWarmup.spec.caches[].include[]",
    "NodeCache.spec.warmups[].caches[].include[]",
    "NodeCache.spec.warmups[].renewedFor[]",
    "CacheWarmup.spec.compile.overrides.resources[].requests{}",
    "CacheWarmup.spec.compile.overrides.resources[].limits{}"};

// Calls `visit` with each row, its field in the CRD and the path of the field. Fails if one of them
// is missing.
using Visit = std::function<void(const Rule& rule, const Json& schema, const std::string& path)>;
void VisitRows(const std::vector<Rule>& rules, const Json& schema, const std::string& path,
               const Visit& visit) {
  std::set<std::string> in_table;
  for (const Rule& rule : rules) {
    const std::string name(rule.name);
    if (name.empty()) {
      continue;  // a check
    }
    EXPECT_TRUE(in_table.insert(name).second) << path << "." << name << " has two rows";
    if (!schema["properties"].contains(name)) {
      ADD_FAILURE() << path << "." << name << " is not in the CRD";
      continue;
    }
    const Json& field = schema["properties"][name];
    const std::string inner = path + "." + name;
    visit(rule, field, inner);
    if (const std::vector<Rule> fields = rule.shape().fields; !fields.empty()) {
      const bool is_list = field.contains("items");
      VisitRows(fields, is_list ? field["items"] : field, inner + (is_list ? "[]" : ""), visit);
    }
  }
  for (const auto& [name, field] : schema["properties"].items()) {
    EXPECT_TRUE(in_table.contains(name)) << path << "." << name << " has no row";
  }
}

void VisitAllRows(const Visit& visit) {
  for (const Resource& each : Resources()) {
    VisitRows(each.rules, each.schema, each.path, visit);
  }
}

bool IsMap(const Json& schema) {
  return schema.contains("additionalProperties");
}

std::string TypeIn(const Json& schema) {
  const std::string type = schema["type"];
  const bool is_digest = schema.value("pattern", "") == "^sha256:[0-9a-f]{64}$";
  return is_digest ? "digest" : schema.value("format", type);
}

TEST(Fields, EachRowHasTheTypeOfTheCrd) {
  int rows = 0;
  VisitAllRows([&rows](const Rule& rule, const Json& schema, const std::string& path) {
    ++rows;
    const Shape shape = rule.shape();
    EXPECT_EQ(shape.type, TypeIn(schema)) << path;
    const bool is_object = shape.type == "object" && !IsMap(schema);
    EXPECT_EQ(is_object && shape.fields.empty(), kOwnReader.contains(path)) << path;
    EXPECT_EQ(shape.type == "array" && shape.fields.empty(),
              schema.contains("items") && schema["items"]["type"] == "string")
        << path;
  });
  EXPECT_GT(rows, 200);
}

TEST(Fields, ListsAndMapsHaveTheLimitsOfTheCrd) {
  VisitAllRows([](const Rule& rule, const Json& schema, const std::string& path) {
    const char* const limit = IsMap(schema) ? "maxProperties" : "maxItems";
    EXPECT_EQ(rule.limit.items, schema.value(limit, size_t{0})) << path;
  });
}

TEST(Fields, IntegersHaveTheBoundsOfTheCrd) {
  VisitAllRows([](const Rule& rule, const Json& schema, const std::string& path) {
    if (rule.shape().type.starts_with("int")) {
      EXPECT_EQ(rule.limit.min, schema.value("minimum", INT64_MIN)) << path;
      EXPECT_EQ(rule.limit.max, schema.value("maximum", INT64_MAX)) << path;
    }
  });
}

TEST(Fields, RequiredRowsAreRequiredInTheCrd) {
  const auto check = [](const std::vector<Rule>& rules, const Json& schema,
                        const std::string& path) {
    const Json required = schema.value("required", Json::array());
    for (const Rule& rule : rules) {
      const bool in_crd = std::find(required.begin(), required.end(), rule.name) != required.end();
      const std::string field = path + "." + std::string(rule.name);
      EXPECT_TRUE(in_crd || rule.presence != FieldPresence::kRequired) << field;
      // A condition without this time is not written by SetCondition().
      EXPECT_TRUE(!in_crd || rule.presence != FieldPresence::kOptional ||
                  field.ends_with(".conditions[].lastTransitionTime"))
          << field;
    }
  };
  for (const Resource& each : Resources()) {
    check(each.rules, each.schema, each.path);
  }
  VisitAllRows([&check](const Rule& rule, const Json& schema, const std::string& path) {
    if (const std::vector<Rule> fields = rule.shape().fields; !fields.empty()) {
      const bool is_list = schema.contains("items");
      check(fields, is_list ? schema["items"] : schema, path + (is_list ? "[]" : ""));
    }
  });
}

// Calls `visit` for each row of strings, with the schema and the path of one string.
void VisitStrings(const Visit& visit) {
  VisitAllRows([&visit](const Rule& rule, const Json& schema, const std::string& path) {
    const Shape shape = rule.shape();
    if (shape.type == "string") {
      visit(rule, schema, path);
    } else if (shape.type == "array" && shape.fields.empty()) {
      visit(rule, schema.value("items", Json::object()), path + "[]");
    } else if (IsMap(schema)) {
      visit(rule, schema["additionalProperties"], path + "{}");
    }
  });
}

TEST(Fields, StringsHaveTheLengthsOfTheCrd) {
  VisitStrings([](const Rule& rule, const Json& schema, const std::string& path) {
    if (!schema.contains("enum")) {
      EXPECT_EQ(rule.limit.bytes, schema.value("maxLength", size_t{0})) << path;
    }
  });
}

bool Accepts(const Limit& limit, const std::string& text) {
  return text.size() <= limit.bytes && (limit.pattern == nullptr || limit.pattern(text));
}

TEST(Fields, EnumsHaveTheValuesOfTheCrd) {
  VisitStrings([](const Rule& rule, const Json& schema, const std::string& path) {
    if (const auto words = rule.shape().words; !words.empty()) {
      EXPECT_EQ(Json(words), schema.value("enum", Json())) << path;
    } else if (schema.contains("enum")) {
      for (const Json& value : schema["enum"]) {
        EXPECT_TRUE(Accepts(rule.limit, value)) << path << " " << value;
      }
    }
  });
}

// Strings at the borders of the patterns.
std::vector<std::string> Probes() {
  std::vector<std::string> probes = {
      "",    "a",    "A",       "0",    "-",      "_",     "a-",       "-a",   "a-b",
      "a.b", "a..b", "a.",      ".a",   ".",      "..",    "a/b",      "/",    "/a",
      "//a", "a//",  "a_b",     "_a",   "9a",     "A_9",   "a b",      "a\n",  "a\t",
      "a=b", "a:1",  "u0",      "u",    "u-1",    "u1000", "u1/.",     "root", "image",
      "GET", "get",  "CONNECT", "/a b", "/a?b=c", "\x7f",  "\xC3\xA9",
  };
  const std::vector<size_t> lengths = {11,  12,  40,  41,  63,   64,   65,
                                       128, 129, 253, 254, 1024, 1025, 4097};
  for (const size_t length : lengths) {
    probes.push_back(std::string(length, 'a'));
    probes.push_back("/" + std::string(length - 1, 'a'));
    probes.push_back("u" + std::string(length - 1, '1'));
    probes.push_back(std::string(length, 'g'));
  }
  return probes;
}

TEST(Fields, ReadersAcceptNoStringThatTheCrdRejects) {
  const std::vector<std::string> probes = Probes();
  VisitStrings([&probes](const Rule& rule, const Json& schema, const std::string& path) {
    if (!schema.contains("pattern")) {
      return;
    }
    EXPECT_EQ(rule.limit.pattern == nullptr, kItemsWithoutPattern.contains(path)) << path;
    if (rule.limit.pattern == nullptr) {
      return;
    }
    EXPECT_FALSE(rule.limit.words.empty()) << path;
    int accepted = 0;
    for (const std::string& probe : probes) {
      if (Accepts(rule.limit, probe)) {
        ++accepted;
        EXPECT_EQ(Problem(probe, schema, path), "") << "for \"" << probe << "\"";
      }
    }
    EXPECT_GT(accepted, 0) << path;
  });
}

}  // namespace
}  // namespace cachewarm::api::json

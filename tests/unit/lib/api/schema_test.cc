// SPDX-License-Identifier: Apache-2.0
// Compares crds/ and lib/api: both have the same fields, defaults, limits and enum values.
#include "tests/unit/lib/api/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lib/api/json/limits.h"
#include "lib/api/json/words.h"
#include "lib/caches/cache_table.h"
#include "tests/unit/lib/api/samples.h"

namespace cachewarm::api {
namespace {

using codec::Json;

struct Part {
  std::string path;  // "spec" or "status"
  Json schema;
  Json full;  // as the encoder writes the sample with every field set
};

Part PartOf(const std::string& file, const std::string& path, Json full) {
  return {path, LoadSchema(file)["properties"][path], std::move(full)};
}

std::vector<Part> AllParts() {
  return {PartOf("cachewarmups.yaml", "spec", EncodeSpec(FullWarmupSpec())),
          PartOf("cachewarmups.yaml", "status", EncodeStatus(FullWarmupStatus())),
          PartOf("nodecaches.yaml", "spec", EncodeSpec(FullNodeCacheSpec())),
          PartOf("nodecaches.yaml", "status", EncodeStatus(FullNodeCacheStatus()))};
}

Json DecodedAndEncoded(const std::string& file, const std::string& part, const Json& value) {
  if (file == "cachewarmups.yaml") {
    Json object = MinimalWarmup();
    object[part] = value;
    const auto warmup = DecodeCacheWarmup(object);
    return !warmup.ok()     ? Json(warmup.status().ToString())
           : part == "spec" ? EncodeSpec(warmup->spec)
                            : EncodeStatus(warmup->status);
  }
  Json object = MinimalNodeCache();
  object[part] = value;
  const auto cache = DecodeNodeCache(object);
  return !cache.ok()      ? Json(cache.status().ToString())
         : part == "spec" ? EncodeSpec(cache->spec)
                          : EncodeStatus(cache->status);
}

TEST(Schema, HasExactlyTheEncodedFields) {
  for (const Part& part : AllParts()) {
    EXPECT_EQ(ObjectPaths(part.full, part.schema, part.path), SchemaPaths(part.schema, part.path));
  }
}

TEST(Schema, EveryEncodedFieldIsDecoded) {
  EXPECT_EQ(DecodedAndEncoded("cachewarmups.yaml", "status", EncodeStatus(FullWarmupStatus())),
            EncodeStatus(FullWarmupStatus()));
  EXPECT_EQ(DecodedAndEncoded("nodecaches.yaml", "spec", EncodeSpec(FullNodeCacheSpec())),
            EncodeSpec(FullNodeCacheSpec()));
  EXPECT_EQ(DecodedAndEncoded("nodecaches.yaml", "status", EncodeStatus(FullNodeCacheStatus())),
            EncodeStatus(FullNodeCacheStatus()));
  // workloadRef and selector exclude each other, so the spec is read in two parts.
  for (const char* left_out : {"workloadRef", "selector"}) {
    Json spec = EncodeSpec(FullWarmupSpec());
    spec.erase(left_out);
    if (spec.contains("workloadRef")) {
      spec.erase("template");
    }
    EXPECT_EQ(DecodedAndEncoded("cachewarmups.yaml", "spec", spec), spec);
  }
}

TEST(Schema, AcceptsEveryEncodedObject) {
  for (const Part& part : AllParts()) {
    EXPECT_EQ(Problem(part.full, part.schema, part.path), "");
  }
}

TEST(Schema, AcceptsStatusesWithOverlongValues) {
  const std::string text(9000, 'x');
  WarmupStatus status = FullWarmupStatus();
  for (std::string* field : {&status.conditions[0].reason,
                             &status.conditions[0].message,
                             &status.bundles[0].gpu_type,
                             &status.bundles[0].cpu_class,
                             &status.bundles[0].image,
                             &status.bundles[0].builder_pod,
                             &status.bundles[0].builder_node,
                             &status.bundles[0].message,
                             &status.bundles[0].hung_starts[0].pod,
                             &status.bundles[0].hung_starts[0].node,
                             &status.bundles[0].hung_starts[0].group,
                             &status.suspended_bundles[0].gpu_type,
                             &status.suspended_bundles[0].cpu_class,
                             &status.suspended_bundles[0].image,
                             &status.suspended_bundles[0].message,
                             &status.builders[0].revision,
                             &status.builders[0].pod_uid,
                             &status.builders[0].pod_name,
                             &status.builders[0].job,
                             &status.builders[0].node,
                             &status.builders[0].reason,
                             &status.builders[0].message,
                             &status.admitted->revision,
                             &status.admitted->image,
                             &status.suspension->reason,
                             &status.suspension->message,
                             &status.suspension->template_hash,
                             &status.suspension->policy_hash,
                             &status.suspension->revision,
                             &status.suspension->nodes[0].uid,
                             &status.suspension->nodes[0].boot_id,
                             &status.starts.recent[0].pod,
                             &status.starts.recent[0].node,
                             &status.starts.recent[0].key,
                             &status.summary.types,
                             &status.summary.nodes,
                             &status.summary.hit,
                             &status.summary.partial,
                             &status.summary.saved}) {
    *field = text;
  }
  status.conditions.resize(70, status.conditions[0]);
  status.bundles[0].hung_starts.resize(70, status.bundles[0].hung_starts[0]);
  status.bundles.resize(70, status.bundles[0]);
  status.suspended_bundles[0].hung_starts.resize(70, status.suspended_bundles[0].hung_starts[0]);
  status.suspended_bundles.resize(70, status.suspended_bundles[0]);
  status.builders[0].ranks.resize(70, "uid");
  status.builders.resize(70, status.builders[0]);
  status.suspension->nodes.resize(70, status.suspension->nodes[0]);
  status.injection->warm_revisions.resize(70, "r");
  status.injection->env.resize(300, status.injection->env[0]);
  status.starts.gpu_types.resize(70, status.starts.gpu_types[0]);
  status.starts.recent.resize(300, status.starts.recent[0]);
  status.starts.counted_pod_uids.resize(300, "uid");
  const Part part = PartOf("cachewarmups.yaml", "status", EncodeStatus(status));
  EXPECT_EQ(Problem(part.full, part.schema, part.path), "");
}

TEST(Schema, AcceptsNodeStatusesWithOverlongValues) {
  const std::string text(9000, 'x');
  NodeCacheStatus status = FullNodeCacheStatus();
  for (std::string* field :
       {&status.node.gpu_type, &status.node.cpu_class, &status.node.driver,
        &status.node.agent_version, &status.node.root.path, &status.node.root.message,
        &status.warmups[0].generation, &status.warmups[0].message,
        &status.warmups[0].bundles[0].reason, &status.warmups[0].bundles[0].message,
        &status.captures[0].reason, &status.captures[0].message}) {
    *field = text;
  }
  status.captures[0].left_behind.directories.assign(20, text);
  status.conditions[0].reason = text;
  status.conditions[0].message = text;
  status.conditions.resize(70, status.conditions[0]);
  status.warmups[0].prepared.resize(20, "u1");
  status.warmups[0].bundles.resize(70, status.warmups[0].bundles[0]);
  status.warmups.resize(70, status.warmups[0]);
  status.captures.resize(70, status.captures[0]);
  status.starts.resize(70, status.starts[0]);
  const Part part = PartOf("nodecaches.yaml", "status", EncodeStatus(status));
  EXPECT_EQ(Problem(part.full, part.schema, part.path), "");
}

// Returns the member at `path` ("a.b[].c") of an object with one element in each list.
Json::json_pointer PointerTo(const std::string& path) {
  std::string pointer = "/" + path;
  for (size_t at = 0; (at = pointer.find_first_of(".[", at)) != std::string::npos; ++at) {
    pointer.replace(at, pointer[at] == '[' ? 2 : 1, pointer[at] == '[' ? "/0" : "/");
  }
  return Json::json_pointer(pointer);
}

TEST(Schema, DefaultsMatchTheValues) {
  Json minimal = MinimalWarmup();
  minimal["spec"]["compile"]["requests"] = Json::array({{{"path", "/"}, {"port", 1}}});
  const auto defaulted = DecodeCacheWarmup(minimal);
  NodeCacheSpec node;
  node.captures = {CaptureRequest{}};
  const std::map<std::string, Json> written = {
      {"cachewarmups.yaml", {{"spec", EncodeSpec(defaulted->spec)}}},
      {"nodecaches.yaml", {{"spec", EncodeSpec(node)}}}};
  int count = 0;
  for (const auto& [file, object] : written) {
    const Json& whole = object;
    VisitSchema(LoadSchema(file), "", [&](const std::string& path, const Json& schema) {
      if (!schema.contains("default") || schema["default"].is_object()) {
        return;
      }
      ++count;
      EXPECT_EQ(whole.at(PointerTo(path)), schema["default"]) << path;
      EXPECT_TRUE(schema["description"].get<std::string>().find("Default ") != std::string::npos)
          << path;
    });
  }
  EXPECT_EQ(count, 14);
}

template <typename Words>
Json Texts(const Words& words) {
  Json texts = Json::array();
  for (const auto& word : words) {
    texts.push_back(word.text);
  }
  return texts;
}

TEST(Schema, EnumsMatchTheValues) {
  const std::map<std::string, Json> cases = {
      {"spec.compile.builder", Texts(json::kBuilderWords)},
      {"spec.compile.proof", Texts(json::kProofWords)},
      {"spec.compile.overrides.tolerations[].operator", {"Equal", "Exists"}},
      {"spec.compile.overrides.tolerations[].effect",
       {"NoSchedule", "PreferNoSchedule", "NoExecute"}},
      {"spec.compile.requests[].method", Json(json::kRequestMethods)},
      {"spec.gate.mode", Texts(json::kGateModeWords)},
      {"status.builders[].state", Texts(json::kBuilderStateWords)},
      {"status.starts.recent[].result", Texts(json::kStartResultWords)},
      {"status.starts.recent[].engine.log", Texts(json::kEngineLogWords)},
      {"status.conditions[].status", {"True", "False", "Unknown"}},
      {"status.warmups[].bundles[].state", Texts(json::kBundleStateWords)},
      {"status.captures[].state", Texts(json::kCaptureStateWords)},
      {"status.starts[].result", Texts(json::kStartResultWords)},
  };
  std::map<std::string, Json> found;
  for (const char* file : {"cachewarmups.yaml", "nodecaches.yaml"}) {
    VisitSchema(LoadSchema(file), "", [&](const std::string& path, const Json& schema) {
      if (schema.contains("enum")) {
        found[path] = schema["enum"];
      }
    });
  }
  EXPECT_EQ(found, cases);
}

// Replaces the member at `path`. Adds a request first, so that its members exist.
Json With(Json object, const std::string& path, Json value) {
  if (path.find("requests[]") != std::string::npos) {
    object["spec"]["compile"]["requests"] = Json::array({{{"path", "/"}, {"port", 1}}});
  }
  object[PointerTo(path)] = std::move(value);
  return object;
}

TEST(Schema, RangesOfTheSpecMatchTheDecoder) {
  int count = 0;
  VisitSchema(LoadSchema("cachewarmups.yaml")["properties"]["spec"], "spec",
              [&](const std::string& path, const Json& schema) {
                if (schema["type"] != "integer") {
                  return;
                }
                ++count;
                const int64_t low = schema["minimum"];
                const int64_t high = schema["maximum"];
                EXPECT_TRUE(DecodeCacheWarmup(With(MinimalWarmup(), path, low)).ok()) << path;
                EXPECT_TRUE(DecodeCacheWarmup(With(MinimalWarmup(), path, high)).ok()) << path;
                EXPECT_FALSE(DecodeCacheWarmup(With(MinimalWarmup(), path, low - 1)).ok()) << path;
                EXPECT_FALSE(DecodeCacheWarmup(With(MinimalWarmup(), path, high + 1)).ok()) << path;
              });
  EXPECT_EQ(count, 11);
}

TEST(Schema, EverythingIsBoundedAndDescribed) {
  for (const Part& part : AllParts()) {
    VisitSchema(part.schema, part.path, [&](const std::string& path, const Json& schema) {
      const auto type = schema.value("type", std::string());
      EXPECT_TRUE(schema.contains("description") || path.ends_with("[]")) << path;
      if (type == "array") {
        EXPECT_TRUE(schema.contains("maxItems")) << path;
        EXPECT_TRUE(schema.contains("x-kubernetes-list-type") || path.ends_with("include")) << path;
      } else if (type == "string") {
        EXPECT_TRUE(schema.contains("maxLength") || schema.contains("enum") ||
                    schema.value("format", "") == "date-time")
            << path;
      } else if (type == "integer") {
        EXPECT_TRUE(schema.contains("format") && schema.contains("minimum")) << path;
      } else if (schema.contains("additionalProperties")) {
        EXPECT_TRUE(schema.contains("maxProperties")) << path;
      }
    });
  }
}

// Returns `schema` without descriptions and rules.
Json Shape(Json schema) {
  schema.erase("description");
  schema.erase("x-kubernetes-validations");
  for (const char* inner : {"properties", "items"}) {
    if (schema.contains(inner) && std::string(inner) == "items") {
      schema[inner] = Shape(schema[inner]);
    } else if (schema.contains(inner)) {
      for (Json& member : schema[inner]) {
        member = Shape(member);
      }
    }
  }
  return schema;
}

TEST(Schema, BothResourcesHaveTheSameCaches) {
  const Json user = LoadSchema("cachewarmups.yaml")["properties"]["spec"]["properties"]["caches"];
  const Json node = LoadSchema("nodecaches.yaml")["properties"]["spec"]["properties"]["warmups"]
                                                 ["items"]["properties"]["caches"];
  EXPECT_EQ(Shape(user), Shape(node));
}

// The operator validates names of presets, so that a new one needs no new CRD.
TEST(Schema, AcceptsEveryPresetAndNamesNoneInARule) {
  const Json caches = LoadSchema("cachewarmups.yaml")["properties"]["spec"]["properties"]["caches"];
  const std::string rules = caches["items"]["x-kubernetes-validations"].dump();
  EXPECT_THAT(rules, testing::HasSubstr("has(self.env) == has(self.path)"));
  for (const std::string& name : caches::PresetNames()) {
    EXPECT_EQ(Problem(Json::array({{{"name", name}}}), caches, "caches"), "");
    EXPECT_EQ(rules.find("'" + name + "'"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace cachewarm::api

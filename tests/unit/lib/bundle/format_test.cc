// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/format.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using codec::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json ManifestJson() {
  return *codec::ParseJson(PackTree(SampleTree()).packed.manifest_text);
}
Json ConfigJson() {
  return *codec::ParseJson(PackTree(SampleTree()).packed.config_text);
}

TEST(Manifest, IsOciImageManifestWithArtifactType) {
  const Json json = ManifestJson();
  EXPECT_EQ(json["schemaVersion"], 2);
  EXPECT_EQ(json["mediaType"], "application/vnd.oci.image.manifest.v1+json");
  EXPECT_EQ(json["artifactType"], "application/vnd.cachewarm.bundle.v1");
  EXPECT_EQ(json["config"]["mediaType"], "application/vnd.oci.image.config.v1+json");
  EXPECT_EQ(json["layers"][0]["mediaType"], "application/vnd.oci.image.layer.v1.tar+zstd");
}

TEST(Manifest, RoundTrips) {
  const PackedSample sample = PackTree(SampleTree());
  const auto manifest = ParseManifest(sample.packed.manifest_text);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->config, sample.packed.manifest.config);
  EXPECT_EQ(manifest->layers, sample.packed.manifest.layers);
  EXPECT_EQ(*WriteManifest(*manifest), sample.packed.manifest_text);
}

TEST(Manifest, IgnoresUnknownFields) {
  Json json = ManifestJson();
  json["subject"] = {{"digest", "sha256:any"}};
  json["layers"][0]["annotations"] = {{"a", "b"}};
  EXPECT_TRUE(ParseManifest(json.dump()).ok());
}

TEST(Manifest, RejectsTooManyValues) {
  Json json = ManifestJson();
  json["extra"] = std::vector<Json>(kManifestLimits.values_max, Json::array());
  const std::string text = json.dump();
  ASSERT_LT(text.size(), kManifestLimits.bytes_max);
  EXPECT_THAT(std::string(ParseManifest(text).status().message()), HasSubstr("over the limit of"));
}

struct Change {
  std::string name;
  std::function<void(Json&)> change;
  std::string message;
};

TEST(Manifest, MalformedManifestErrorNamesField) {
  const Change changes[] = {
      {"schema", [](Json& j) { j["schemaVersion"] = 1; }, "schemaVersion"},
      {"no schema", [](Json& j) { j.erase("schemaVersion"); }, "schemaVersion: is required"},
      {"media type", [](Json& j) { j["mediaType"] = "text/plain"; }, "mediaType"},
      {"artifact type", [](Json& j) { j["artifactType"] = "x"; }, "artifactType"},
      {"no artifact type", [](Json& j) { j.erase("artifactType"); }, "artifactType"},
      {"config type", [](Json& j) { j["config"]["mediaType"] = "x"; }, "config.mediaType"},
      {"no config", [](Json& j) { j.erase("config"); }, "config: is required"},
      {"digest", [](Json& j) { j["config"]["digest"] = "sha256:AB"; }, "config.digest"},
      {"sha512", [](Json& j) { j["config"]["digest"] = "sha512:00"; }, "config.digest"},
      {"size", [](Json& j) { j["config"]["size"] = -1; }, "config.size"},
      {"float", [](Json& j) { j["config"]["size"] = 1.5; }, "config.size"},
      {"huge", [](Json& j) { j["config"]["size"] = kConfigBytesMax + 1; }, "config"},
      {"no layers", [](Json& j) { j["layers"] = Json::array(); }, "layers: is empty"},
      {"layer type", [](Json& j) { j["layers"][0]["mediaType"] = "x"; }, "layers[0].mediaType"},
      {"layer list", [](Json& j) { j["layers"] = "x"; }, "layers"},
      {"many layers", [](Json& j) { j["layers"] = Json(kLayersMax + 1, j["layers"][0]); },
       "layers"},
  };
  for (const Change& c : changes) {
    Json json = ManifestJson();
    c.change(json);
    const auto parsed = ParseManifest(json.dump());
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << c.name;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(c.message)) << c.name;
  }
}

TEST(Config, HasFieldsThatContainerdNeeds) {
  const PackedSample sample = PackTree(SampleTree());
  const Json json = ConfigJson();
  EXPECT_EQ(json["os"], "linux");
  EXPECT_EQ(json["architecture"], "amd64");
  EXPECT_EQ(json["rootfs"]["type"], "layers");
  EXPECT_EQ(json["rootfs"]["diff_ids"][0], sample.packed.config.layers[0].diff_id.ToString());
}

TEST(Config, RoundTrips) {
  const PackedSample sample = PackTree(SampleTree());
  const auto config = ParseConfig(sample.packed.config_text);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*WriteConfig(*config), sample.packed.config_text);
}

TEST(Config, MalformedConfigErrorNamesField) {
  const auto entries = [](Json& j) -> Json& { return j["cachewarm"]["entries"]; };
  const auto frame = [](Json& j) -> Json& { return j["cachewarm"]["layers"][0]["frames"][0]; };
  const Change changes[] = {
      {"no section", [](Json& j) { j.erase("cachewarm"); }, "cachewarm: is required"},
      {"version", [](Json& j) { j["cachewarm"]["version"] = 1; }, "cachewarm.version"},
      {"no diff ids", [](Json& j) { j["rootfs"].erase("diff_ids"); }, "rootfs.diff_ids"},
      {"other diff ids", [](Json& j) { j["rootfs"]["diff_ids"] = Json::array(); }, "diff_ids"},
      {"diff id", [](Json& j) { j["rootfs"]["diff_ids"][0] = "x"; }, "rootfs.diff_ids"},
      {"no entries", [](Json& j) { j["cachewarm"].erase("entries"); }, "entries: is required"},
      {"no lines", [&](Json& j) { entries(j).erase("packed"); }, "entries.packed: is required"},
      {"not packed", [&](Json& j) { entries(j)["packed"] = "AAAA"; }, "entries.packed"},
      {"size of lines", [&](Json& j) { entries(j)["lineBytes"] = 1; }, "entries.packed"},
      {"negative", [&](Json& j) { entries(j)["lineBytes"] = -1; }, "entries.lineBytes"},
      {"bomb", [&](Json& j) { entries(j)["lineBytes"] = 1LL << 40; }, "entries.lineBytes"},
      {"gap", [&](Json& j) { frame(j)["offset"] = 1; }, "frames[0].offset"},
      {"empty frame", [&](Json& j) { frame(j)["size"] = 0; }, "frames[0].size"},
      {"huge frame", [&](Json& j) { frame(j)["rawSize"] = 1LL << 40; }, "frames[0].rawSize"},
      {"no frames", [&](Json& j) { j["cachewarm"]["layers"][0]["frames"] = Json::array(); },
       "frames: is empty"},
      {"factors", [](Json& j) { j["cachewarm"]["factors"] = 1; }, "cachewarm.factors"},
      {"requires", [](Json& j) { j["cachewarm"]["requires"]["cpuClass"] = 1; }, "cpuClass"},
  };
  for (const Change& c : changes) {
    Json json = ConfigJson();
    c.change(json);
    const auto parsed = ParseConfig(json.dump());
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << c.name;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(c.message)) << c.name;
  }
}

TEST(Config, RejectsEntryOutsideTheFrameIndex) {
  PackedSample sample = PackTree(SampleTree());
  sample.packed.config.entries[0].frame = 1000;
  const auto parsed = ParseConfig(*WriteConfig(sample.packed.config));
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("is in frame 1000"));
}

TEST(Config, EnforcesCountLimits) {
  const std::string text = PackTree(SampleTree()).packed.config_text;
  EXPECT_FALSE(ParseConfig(text, {.entries_max = 7}).ok());
  EXPECT_FALSE(ParseConfig(text, {.frames_max = 2}).ok());
  EXPECT_TRUE(ParseConfig(text, {.entries_max = 8}).ok());
}

// 512 factors, and the ids of their salt and part (lib/capture/engine_factors.h).
TEST(Config, LimitsTheFactorsOfTheEngine) {
  Json json = ConfigJson();
  for (int i = 0; i < 514; ++i) {
    json["cachewarm"]["engineFactors"]["f" + std::to_string(i)] = "0123456789abcdef";
  }
  EXPECT_TRUE(ParseConfig(json.dump()).ok());
  json["cachewarm"]["engineFactors"]["more"] = "0123456789abcdef";
  EXPECT_THAT(std::string(ParseConfig(json.dump()).status().message()),
              HasSubstr("cachewarm.engineFactors"));
}

TEST(Format, EntriesImplyDirectoriesInAnyOrder) {
  std::vector<Entry> entries;
  for (const char* path : {"a/b/c", "d", "a/b/e", "a/f/g/h", "a/b/i", "j/k"}) {
    entries.push_back({.path = path});
  }
  EXPECT_THAT(ImpliedDirectories(entries), ElementsAre("a", "a/b", "a/f", "a/f/g", "j"));
  EXPECT_THAT(ImpliedDirectories({}), ElementsAre());
}

TEST(Format, DamagedTextDoesNotCrash) {
  const PackedSample sample = PackTree(SampleTree());
  for (const std::string& text : {sample.packed.config_text, sample.packed.manifest_text}) {
    for (uint32_t seed = 0; seed < 200; ++seed) {
      const std::string random = Noise(8, seed);
      std::string damaged = text;
      for (size_t i = 0; i < 4; ++i) {
        const size_t at = (static_cast<unsigned char>(random[2 * i]) * 256U +
                           static_cast<unsigned char>(random[2 * i + 1])) %
                          damaged.size();
        damaged[at] = random[i];
      }
      ParseConfig(damaged).status().IgnoreError();
      ParseManifest(damaged).status().IgnoreError();
    }
  }
}

}  // namespace
}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/packed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "fmt/format.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::codec {
namespace {

Json Pod(int number) {
  return Json{{"metadata",
               {{"name", fmt::format("llama-{:05}", number)},
                {"uid", fmt::format("5b2c4a1e-0000-4000-8000-{:012}", number)},
                {"labels", {{"app", "llama"}, {"pod-template-hash", "7c6d9f8b5"}}}}},
              {"spec",
               {{"containers",
                 {{{"name", "server"},
                   {"image", "registry.example/vllm:0.9"},
                   {"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}}}}}},
              {"status", {{"phase", "Running"}}}};
}

TEST(PackedJson, RoundTripsEveryKindOfValue) {
  const auto table = PackTable::Make();
  for (const Json& value : {Json(nullptr),
                            Json(true),
                            Json(false),
                            Json(0),
                            Json(-1),
                            Json(127),
                            Json(128),
                            Json(std::numeric_limits<int64_t>::max()),
                            Json(std::numeric_limits<int64_t>::min()),
                            Json(std::numeric_limits<uint64_t>::max()),
                            Json(0.5),
                            Json(-1e300),
                            Json(""),
                            Json("x"),
                            Json(std::string(100'000, 'y')),
                            Json(std::string("\0\xff", 2)),
                            Json::array(),
                            Json::object(),
                            Json{{"", ""}},
                            Json{1, "two", nullptr, {3.0, Json::object()}},
                            Pod(1)}) {
    EXPECT_EQ(table->Pack(value).Unpack(), value);
  }
}

TEST(PackedJson, RoundTripsSharedParts) {
  const auto table = PackTable::Make();
  std::vector<PackedJson> packed;
  for (int i = 0; i < 100; ++i) {
    packed.push_back(table->Pack(Pod(i)));
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(packed[static_cast<size_t>(i)].Unpack(), Pod(i));
  }
}

TEST(PackedJson, UnpackedValueDumpsToSameText) {
  const auto table = PackTable::Make();
  const Json value = Json::parse(R"({"z":[1,-2,3.5,18446744073709551615],"a":{"b":"c"}})");
  EXPECT_EQ(DumpJson(table->Pack(value).Unpack()), DumpJson(value));
}

TEST(PackedJson, SimilarObjectsUseAFractionOfTheirText) {
  const auto table = PackTable::Make();
  std::vector<PackedJson> packed;
  size_t text = 0;
  size_t bytes = 0;
  for (int i = 0; i < 1000; ++i) {
    text += DumpJson(Pod(i)).size();
    packed.push_back(table->Pack(Pod(i)));
    bytes += packed.back().bytes();
  }
  EXPECT_LT(5 * (bytes + table->part_bytes()), 2 * text);
  // Names and uids are unique: sharing them would cost more than it saves.
  EXPECT_LT(table->parts(), 100U);
}

TEST(PackedJson, RepeatedChangesDoNotShareMoreParts) {
  const auto table = PackTable::Make();
  std::vector<PackedJson> packed(100);
  const auto pack_all = [&](int version) {
    for (int i = 0; i < 100; ++i) {
      Json pod = Pod(i);
      pod["metadata"]["resourceVersion"] = fmt::format("{}", 1'000'000 + 1000 * version + i);
      packed[static_cast<size_t>(i)] = table->Pack(pod);
    }
  };
  pack_all(0);
  const size_t listed = table->parts();
  for (int version = 1; version < 20; ++version) {
    pack_all(version);
  }
  EXPECT_LE(table->parts(), listed + 2);
}

TEST(PackedJson, ShortTextsAreSharedOnlyIfFrequent) {
  const struct {
    size_t size;
    int values;
    bool is_common;
  } cases[] = {{10, 12, false}, {10, 20, true}, {38, 3, false}, {38, 6, true}, {1000, 3, true}};
  for (const auto& c : cases) {
    const auto table = PackTable::Make();
    std::vector<PackedJson> packed;
    for (int i = 0; i < c.values; ++i) {
      packed.push_back(table->Pack(std::string(c.size, 't')));
    }
    EXPECT_EQ(table->parts() == 1, c.is_common) << c.size << " bytes, " << c.values << " times";
  }
}

TEST(PackedJson, LastHolderFreesSharedParts) {
  const auto table = PackTable::Make();
  {
    std::vector<PackedJson> packed;
    for (int i = 0; i < 50; ++i) {
      packed.push_back(table->Pack(Pod(i)));
    }
    EXPECT_GT(table->parts(), 0U);
    packed.erase(packed.begin(), packed.begin() + 49);
    EXPECT_EQ(packed[0].Unpack(), Pod(49)) << "others' ends take nothing away";
  }
  EXPECT_EQ(table->parts(), 0U);
  EXPECT_EQ(table->part_bytes(), 0U);
}

TEST(PackedJson, TableReusesFreedSlots) {
  const auto table = PackTable::Make();
  for (int generation = 0; generation < 3; ++generation) {
    std::vector<PackedJson> packed;
    for (int i = 0; i < 20; ++i) {
      packed.push_back(table->Pack(Json{{"text", fmt::format("generation-{}", generation)}}));
    }
    EXPECT_EQ(packed.back().Unpack()["text"], fmt::format("generation-{}", generation));
  }
  EXPECT_EQ(table->parts(), 0U);
}

TEST(PackedJson, MoveAndAssignmentNeitherLoseNorLeakParts) {
  const auto table = PackTable::Make();
  std::vector<PackedJson> others;
  for (int i = 0; i < 5; ++i) {
    others.push_back(table->Pack(Pod(i)));
  }
  PackedJson first = table->Pack(Pod(6));
  PackedJson second = table->Pack(Pod(7));
  first = std::move(second);
  EXPECT_EQ(first.Unpack(), Pod(7));
  const PackedJson third(std::move(first));
  EXPECT_EQ(third.Unpack(), Pod(7));
  EXPECT_TRUE(PackedJson().Unpack().is_null());
  EXPECT_TRUE(PackedJson().value().is_null());
}

TEST(PackedJson, OutlivesTheTableOwner) {
  PackedJson packed;
  {
    const auto table = PackTable::Make();
    for (int i = 0; i < 5; ++i) {
      packed = table->Pack(Pod(1));
    }
  }
  EXPECT_EQ(packed.Unpack(), Pod(1));
}

class PackedValueTest : public testing::Test {
 protected:
  // Packs the value alone, with every part inline, and then among many, with shared parts.
  static std::vector<PackedJson> Both(const Json& value) {
    const auto table = PackTable::Make();
    std::vector<PackedJson> both;
    for (int i = 0; i < 6; ++i) {
      both.push_back(table->Pack(value));
    }
    both.erase(both.begin() + 1, both.begin() + 5);
    return both;
  }
};

TEST_F(PackedValueTest, FindsMembersByPath) {
  for (const PackedJson& packed : Both(Pod(3))) {
    const PackedValue pod = packed.value();
    EXPECT_TRUE(pod.is_object());
    EXPECT_EQ(pod.TextAt({"metadata", "labels", "app"}), "llama");
    EXPECT_EQ(pod.At({"spec", "containers"}).Items()[0].TextAt({"image"}),
              "registry.example/vllm:0.9");
    EXPECT_EQ(pod.At({"status"}).Unpack(), Json::parse(R"({"phase":"Running"})"));
  }
}

TEST_F(PackedValueTest, AbsentOrMistypedMembersReadAsEmpty) {
  for (const PackedJson& packed :
       Both(Json{{"text", "some words"}, {"list", {1, 2}}, {"no", nullptr}})) {
    const PackedValue value = packed.value();
    EXPECT_TRUE(value.At({"absent"}).is_null());
    EXPECT_TRUE(value.At({"text", "deeper"}).is_null());
    EXPECT_TRUE(value.At({"no"}).is_null());
    EXPECT_EQ(value.At({"list"}).Text(), "");
    EXPECT_FALSE(value.At({"list"}).is_string());
    EXPECT_TRUE(value.At({"list"}).is_array());
    EXPECT_TRUE(value.At({"text"}).Items().empty());
    EXPECT_EQ(value.At({"text"}).Text(), "some words");
    EXPECT_EQ(value.At({}).Unpack().size(), 3U);
  }
}

TEST_F(PackedValueTest, DefaultValueIsNull) {
  const PackedValue nothing;
  EXPECT_TRUE(nothing.is_null());
  EXPECT_TRUE(nothing.At({"a"}).is_null());
  EXPECT_TRUE(nothing.Items().empty());
  EXPECT_TRUE(nothing.Unpack().is_null());
}

// For TSan: two threads add and remove values while a third reads without a lock.
TEST(PackedJson, IsReadableDuringConcurrentChanges) {
  const auto table = PackTable::Make();
  std::vector<PackedJson> kept;
  for (int i = 0; i < 20; ++i) {
    kept.push_back(table->Pack(Pod(i)));
  }
  const auto churn = [&](int from) {
    return [&table, from](std::stop_token stop) {
      for (int i = from; !stop.stop_requested(); ++i) {
        std::vector<PackedJson> passing;
        for (int j = 0; j < 5; ++j) {
          passing.push_back(table->Pack(Json{{"i", fmt::format("round-{}", i)}, {"pod", Pod(j)}}));
        }
      }
    };
  };
  const std::jthread one(churn(0));
  const std::jthread two(churn(1'000'000));
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(kept[static_cast<size_t>(i)].Unpack(), Pod(i));
    }
  }
}

}  // namespace
}  // namespace cachewarm::codec

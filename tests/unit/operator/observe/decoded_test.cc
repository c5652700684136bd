// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/decoded.h"

#include <gtest/gtest.h>

#include "lib/codec/json_value.h"
#include "tests/fakes/memory_log.h"

namespace cachewarm::observe {
namespace {

using codec::Json;

Json Named(const std::string& name, const std::string& version = "1") {
  return {{"metadata",
           {{"name", name}, {"namespace", "a"}, {"uid", name}, {"resourceVersion", version}}}};
}

class DecodedTest : public testing::Test {
 protected:
  Decoded<std::string> Make(size_t values_max = 100) {
    return {"Text", store,
            [this](const kube::Object& object) -> absl::StatusOr<std::string> {
              ++decodes;
              const std::string name = kube::NameOf(*object).name;
              return name == "odd" ? absl::StatusOr<std::string>(absl::InvalidArgumentError("odd"))
                                   : name;
            },
            log, values_max};
  }

  kube::Store store;
  fakes::MemoryLog log;
  int decodes = 0;
};

TEST_F(DecodedTest, AValueIsMadeOnceUntilItsObjectChanges) {
  const auto values = Make();
  store.Put(Named("x"));
  const auto first = values.Get({"a", "x"});
  EXPECT_EQ(*first, "x");
  EXPECT_EQ(values.Get({"a", "x"}), first);
  EXPECT_EQ(values.List().size(), 1U);
  EXPECT_EQ(decodes, 1);
  store.Put(Named("x", "2"));
  EXPECT_NE(values.Get({"a", "x"}), first);
  EXPECT_EQ(decodes, 2);
  EXPECT_EQ(values.Get({"a", "y"}), nullptr);
}

TEST_F(DecodedTest, ARelistWithoutNewsMakesNothingAnew) {
  const auto values = Make();
  store.Replace({store.Pack(Named("x")), store.Pack(Named("y"))});
  EXPECT_EQ(values.ListNamespace("a").size(), 2U);
  store.Replace({store.Pack(Named("x")), store.Pack(Named("y"))});
  EXPECT_EQ(values.ListNamespace("a").size(), 2U);
  EXPECT_EQ(decodes, 2);
}

TEST_F(DecodedTest, KeepsNoMoreThanItMayAndGivesAllTheSame) {
  const auto values = Make(10);
  for (int i = 0; i < 25; ++i) {
    store.Put(Named(std::to_string(i)));
  }
  EXPECT_EQ(values.List().size(), 25U);
  EXPECT_EQ(values.List().size(), 25U);
  EXPECT_GT(decodes, 25) << "those that were forgotten are made again";
  decodes = 0;
  const auto some = values.Get({"a", "3"});
  EXPECT_EQ(values.Get({"a", "3"}), some);
  EXPECT_LE(decodes, 1);
}

TEST_F(DecodedTest, WhatIsGoneIsForgotten) {
  auto values = Make();
  store.Put(Named("x"));
  const std::weak_ptr<const std::string> value = values.Get({"a", "x"});
  values.Apply(store.Remove({"a", "x"}).Unpack());
  EXPECT_TRUE(value.expired());
}

TEST_F(DecodedTest, WhatIsNotUnderstoodIsLeftOutAndLoggedOnce) {
  const auto values = Make();
  store.Put(Named("odd"));
  store.Put(Named("x"));
  EXPECT_EQ(values.List().size(), 1U);
  EXPECT_EQ(values.List().size(), 1U);
  EXPECT_EQ(log.warnings().size(), 1U);
}

}  // namespace
}  // namespace cachewarm::observe

// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/job_refusals.h"

#include <gtest/gtest.h>

namespace cachewarm::apply {
namespace {

TEST(JobRefusals, AreKeptPerWarmupUntilTheJobIsMadeOrIsNoLongerWanted) {
  JobRefusals refusals;
  refusals.Record("w1", "llama-1", "no");
  refusals.Record("w1", "llama-1", "still no");
  refusals.Record("w1", "llama-2", "quota");
  refusals.Record("w2", "other-1", "no");
  ASSERT_EQ(refusals.Of("w1").size(), 2U);
  EXPECT_EQ(refusals.Of("w1")[0].name, "llama-1");
  EXPECT_EQ(refusals.Of("w1")[0].message, "still no");
  EXPECT_TRUE(refusals.Of("w1")[0].refused);
  refusals.KeepOnly("w1", {"llama-1", "llama-2", "llama-3"});
  EXPECT_EQ(refusals.Of("w1").size(), 2U);
  refusals.Forget("w1", "llama-1");
  refusals.Forget("w1", "never");
  ASSERT_EQ(refusals.Of("w1").size(), 1U);
  refusals.KeepOnly("w1", {"llama-1"});
  refusals.KeepOnly("w3", {});
  EXPECT_TRUE(refusals.Of("w1").empty());
  EXPECT_EQ(refusals.Of("w2").size(), 1U);
}

}  // namespace
}  // namespace cachewarm::apply

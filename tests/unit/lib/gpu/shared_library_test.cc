// SPDX-License-Identifier: Apache-2.0
#include "lib/gpu/shared_library.h"

#include <gtest/gtest.h>

namespace cachewarm::gpu {
namespace {

TEST(SharedLibrary, ReportsWhyOpenFailed) {
  const SharedLibrary library("libno-such-thing.so.1");
  EXPECT_FALSE(library.open());
  EXPECT_NE(library.error().find("libno-such-thing"), std::string::npos);
  int (*function)() = nullptr;
  EXPECT_FALSE(library.Find("anything", function));
}

TEST(SharedLibrary, FindsOnlyItsOwnSymbols) {
  const SharedLibrary library(FAKE_EMPTY);
  ASSERT_TRUE(library.open()) << library.error();
  int (*function)() = nullptr;
  ASSERT_TRUE(library.Find("cachewarm_fake_empty", function));
  EXPECT_EQ(function(), 1);
  EXPECT_FALSE(library.Find("nvmlInit_v2", function));
  EXPECT_EQ(function, nullptr);
}

TEST(SharedLibrary, MovesItsHandle) {
  SharedLibrary first(FAKE_EMPTY);
  const SharedLibrary second(std::move(first));
  EXPECT_TRUE(second.open());
  EXPECT_FALSE(first.open());  // NOLINT(bugprone-use-after-move): tests the moved-from state
}

}  // namespace
}  // namespace cachewarm::gpu

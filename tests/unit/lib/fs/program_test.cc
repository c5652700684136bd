// SPDX-License-Identifier: Apache-2.0
#include "lib/fs/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::fs {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> TextsOf(const ExecStrings& strings) {
  std::vector<std::string> texts;
  for (char* const* at = strings.pointers(); *at != nullptr; ++at) {
    texts.emplace_back(*at);
  }
  return texts;
}

TEST(ExecStrings, AreNullTerminated) {
  EXPECT_THAT(TextsOf(ExecStrings(std::vector<std::string>{"sh", "", "a b"})),
              ElementsAre("sh", "", "a b"));
  EXPECT_THAT(TextsOf(ExecStrings(std::vector<std::string>())), ElementsAre());
}

TEST(ExecStrings, VariablesBecomeAssignments) {
  EXPECT_THAT(TextsOf(ExecStrings(std::map<std::string, std::string>{{"A", "x=y"}, {"B", ""}})),
              ElementsAre("A=x=y", "B="));
}

TEST(IsProgram, RequiresARegularFileThatMayBeExecuted) {
  const TempDir folder;
  folder.Write("script", "#!/bin/sh\n");
  const std::string script = folder / "script";
  EXPECT_FALSE(IsProgram(script));
  ASSERT_EQ(::chmod(script.c_str(), 0755), 0);
  EXPECT_TRUE(IsProgram(script));
  ASSERT_EQ(::symlink(script.c_str(), (folder / "link").c_str()), 0);
  EXPECT_TRUE(IsProgram(folder / "link"));
  EXPECT_FALSE(IsProgram(folder / "nothing"));
  EXPECT_FALSE(IsProgram(folder / "."));
}

}  // namespace
}  // namespace cachewarm::fs

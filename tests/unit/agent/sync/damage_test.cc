// SPDX-License-Identifier: Apache-2.0
#include "agent/sync/damage.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cachewarm::agent {
namespace {

struct ChangeCase {
  std::string what;
  FileChange change;
  FileVerdict verdict;
};

const std::vector<ChangeCase>& Changes() {
  static const std::vector<ChangeCase> cases = {
      {"a hard link was made, or the owner changed",
       {.right = true, .same_file = true},
       FileVerdict::kWhole},
      {"another process compiled the same and renamed it into place",
       {.right = true, .written = true},
       FileVerdict::kWhole},
      {"touched", {.right = true, .same_file = true, .written = true}, FileVerdict::kWhole},
      {"Triton compiled it again: rename", {.written = true}, FileVerdict::kTheirs},
      {"a new file of the same size and time", {}, FileVerdict::kTheirs},
      {"Inductor's g++ was killed over a new .so",
       {.written = true, .torn = true},
       FileVerdict::kDamaged},
      {"ninja rewrote build.ninja",
       {.same_file = true, .written = true, .writable = true},
       FileVerdict::kTheirs},
      {"ninja's compiler was killed",
       {.same_file = true, .written = true, .writable = true, .torn = true},
       FileVerdict::kDamaged},
      {"root wrote into an Inductor entry",
       {.same_file = true, .written = true},
       FileVerdict::kDamaged},
      {"the disk lost a bit", {.same_file = true}, FileVerdict::kDamaged},
      {"the disk lost a bit of a file that engines write",
       {.same_file = true, .writable = true},
       FileVerdict::kDamaged},
  };
  return cases;
}

TEST(JudgeFile, TellsDamageFromTheWorkOfEngines) {
  for (const ChangeCase& each : Changes()) {
    EXPECT_EQ(JudgeFile(each.change), each.verdict) << each.what;
  }
}

TEST(JudgeFile, NeverCallsRightBytesDamageNorTornOnesAnEngines) {
  for (unsigned bits = 0; bits < 32; ++bits) {
    const FileChange change{.right = (bits & 1U) != 0,
                            .same_file = (bits & 2U) != 0,
                            .written = (bits & 4U) != 0,
                            .writable = (bits & 8U) != 0,
                            .torn = (bits & 16U) != 0};
    const FileVerdict verdict = JudgeFile(change);
    EXPECT_EQ(verdict == FileVerdict::kWhole, change.right) << bits;
    EXPECT_FALSE(verdict == FileVerdict::kTheirs && change.torn) << bits;
    EXPECT_FALSE(DescribeDamage(change).empty()) << bits;
  }
}

TEST(DescribeDamage, SaysWhatNoEngineDoes) {
  EXPECT_EQ(DescribeDamage(FileChange{.same_file = true}),
            "has other bytes than its bundle says, and nobody wrote it");
  EXPECT_EQ(DescribeDamage(FileChange{.same_file = true, .written = true}),
            "was overwritten in place, which no engine does with files of its kind");
  EXPECT_EQ(DescribeDamage(FileChange{.written = true, .torn = true}),
            "was replaced by a file that is torn");
  EXPECT_EQ(DescribeDamage(DamagedTree{.path = "a/b", .message = "it rots"}), "a/b: it rots");
  EXPECT_EQ(DescribeDamage(DamagedTree{}), "what was damaged is not known any more");
}

TEST(IsLyingList, NeedsTwoInodesThatNobodyWrote) {
  const DamagedTree found{.path = "a", .digest = DigestOf("x"), .inode = 2, .untouched = true};
  struct Case {
    std::string what;
    DamagedTree earlier;
    bool lies;
  };
  const std::vector<Case> cases = {
      {"the same again",
       {.path = "a", .digest = DigestOf("x"), .inode = 1, .untouched = true},
       true},
      {"one inode in two trees",
       {.path = "a", .digest = DigestOf("x"), .inode = 2, .untouched = true},
       false},
      {"it was written then", {.path = "a", .digest = DigestOf("x"), .inode = 1}, false},
      {"another file",
       {.path = "b", .digest = DigestOf("x"), .inode = 1, .untouched = true},
       false},
      {"another bundle's file of that name",
       {.path = "a", .digest = DigestOf("y"), .inode = 1, .untouched = true},
       false},
      {"a record that cannot be read", {}, false},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(IsLyingList(found, {{"other", {}}, {"earlier", each.earlier}}), each.lies)
        << each.what;
  }
  DamagedTree written = found;
  written.untouched = false;
  EXPECT_FALSE(IsLyingList(written, {{"earlier", cases[0].earlier}}));
  EXPECT_FALSE(IsLyingList(found, {}));
}

}  // namespace
}  // namespace cachewarm::agent

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
  FileState state;
};

const std::vector<ChangeCase>& Changes() {
  static const std::vector<ChangeCase> cases = {
      {"a hard link was made, or the owner changed",
       {.right = true, .same_file = true},
       FileState::kIntact},
      {"another process compiled the same and renamed it into place",
       {.right = true, .written = true},
       FileState::kIntact},
      {"touched", {.right = true, .same_file = true, .written = true}, FileState::kIntact},
      {"Triton compiled it again: rename", {.written = true}, FileState::kModifiedByEngine},
      {"a new file of the same size and time", {}, FileState::kModifiedByEngine},
      {"Inductor's g++ was killed over a new .so",
       {.written = true, .truncated = true},
       FileState::kDamaged},
      {"ninja rewrote build.ninja",
       {.same_file = true, .written = true, .writable = true},
       FileState::kModifiedByEngine},
      {"ninja's compiler was killed",
       {.same_file = true, .written = true, .writable = true, .truncated = true},
       FileState::kDamaged},
      {"root wrote into an Inductor entry",
       {.same_file = true, .written = true},
       FileState::kDamaged},
      {"the disk lost a bit", {.same_file = true}, FileState::kDamaged},
      {"the disk lost a bit of a file that engines write",
       {.same_file = true, .writable = true},
       FileState::kDamaged},
  };
  return cases;
}

TEST(EvaluateFile, DistinguishesDamageFromEngineChanges) {
  for (const ChangeCase& each : Changes()) {
    EXPECT_EQ(EvaluateFile(each.change), each.state) << each.what;
  }
}

TEST(EvaluateFile, RightBytesAreIntactAndTruncatedFilesDamaged) {
  for (unsigned bits = 0; bits < 32; ++bits) {
    const FileChange change{.right = (bits & 1U) != 0,
                            .same_file = (bits & 2U) != 0,
                            .written = (bits & 4U) != 0,
                            .writable = (bits & 8U) != 0,
                            .truncated = (bits & 16U) != 0};
    const FileState state = EvaluateFile(change);
    EXPECT_EQ(state == FileState::kIntact, change.right) << bits;
    EXPECT_FALSE(state == FileState::kModifiedByEngine && change.truncated) << bits;
    EXPECT_FALSE(DescribeDamage(change).empty()) << bits;
  }
}

TEST(DescribeDamage, DescribesEveryKindOfDamage) {
  EXPECT_EQ(DescribeDamage(FileChange{.same_file = true}),
            "does not match its bundle, although no process wrote it");
  EXPECT_EQ(DescribeDamage(FileChange{.same_file = true, .written = true}),
            "was modified in place; no compiler does that to this file type");
  EXPECT_EQ(DescribeDamage(FileChange{.written = true, .truncated = true}),
            "was replaced by a truncated file");
  EXPECT_EQ(DescribeDamage(DamagedTree{.path = "a/b", .message = "its content changed"}),
            "a/b: its content changed");
  EXPECT_EQ(DescribeDamage(DamagedTree{}), "the damage record cannot be read");
}

TEST(IsIndexInconsistent, RequiresTwoUntouchedInodes) {
  const DamagedTree found{.path = "a", .digest = DigestOf("x"), .inode = 2, .untouched = true};
  struct Case {
    std::string what;
    DamagedTree earlier;
    bool is_inconsistent;
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
    EXPECT_EQ(IsIndexInconsistent(found, {{"other", {}}, {"earlier", each.earlier}}),
              each.is_inconsistent)
        << each.what;
  }
  DamagedTree written = found;
  written.untouched = false;
  EXPECT_FALSE(IsIndexInconsistent(written, {{"earlier", cases[0].earlier}}));
  EXPECT_FALSE(IsIndexInconsistent(found, {}));
}

}  // namespace
}  // namespace cachewarm::agent

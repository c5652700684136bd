// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "agent/sync/tree_names.h"
#include "agent/tree/journal.h"
#include "agent/tree/links.h"
#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

const Mount kMount{"team", "llama", "uid-1", "image"};
const WallTime kNow{seconds(1'700'000'000)};
const std::string kTree(32, 'a');

QuarantinedBundle Bundle(const std::string& content = "bad") {
  return {.name = {"uid-1", DigestOf(content)},
          .reason = "VerifyFailed",
          .message = "a frame does not match its digest",
          .failures = 3,
          .at = kNow,
          .until = kNow + seconds(60),
          .criteria = "1.0"};
}

DamagedTree Damage() {
  return {.at = kNow,
          .path = "inductor/a",
          .message = "its content changed",
          .digest = DigestOf("a"),
          .inode = UINT64_MAX - 7,
          .untouched = true};
}

TEST(QuarantinedBundle, SurvivesARoundTrip) {
  const Root root;
  QuarantinedBundle for_good = Bundle("other");
  for_good.until = std::nullopt;
  for_good.message = std::string(10'000, 'x');  // from an untrusted bundle
  ASSERT_TRUE(WriteQuarantinedBundle(root.dir(), Bundle()).ok());
  ASSERT_TRUE(WriteQuarantinedBundle(root.dir(), for_good).ok());
  std::vector<QuarantinedBundle> all = ReadQuarantinedBundles(root.dir());
  ASSERT_EQ(all.size(), 2U);
  if (all[0].name != Bundle().name) {
    std::swap(all[0], all[1]);
  }
  EXPECT_EQ(all, (std::vector<QuarantinedBundle>{Bundle(), for_good}));
  ASSERT_TRUE(RemoveQuarantinedBundle(root.dir(), for_good.name).ok());
  EXPECT_EQ(ReadQuarantinedBundles(root.dir()), std::vector<QuarantinedBundle>{Bundle()});
}

TEST(QuarantinedBundle, UnreadableRecordIsRemoved) {
  const std::vector<std::string> texts = {
      "",
      "[]",
      "{}",
      R"({"warmupUID": "uid-1", "digest": "sha256:12"})",
      R"({"warmupUID": "other", "digest": ")" + DigestOf("bad").ToString() + "\"}",
  };
  for (const std::string& text : texts) {
    const Root root;
    const std::string path = QuarantinedBundlePath("uid-1", DigestOf("bad"));
    root.Write(path, text);
    EXPECT_TRUE(ReadQuarantinedBundles(root.dir()).empty()) << text;
    EXPECT_FALSE(root.Exists(path)) << text;
  }
}

TEST(DamagedTree, SurvivesARoundTrip) {
  const Root root;
  EXPECT_FALSE(IsDamagedTree(root.dir(), kTree));
  ASSERT_TRUE(WriteDamagedTree(root.dir(), kTree, Damage()).ok());
  EXPECT_TRUE(IsDamagedTree(root.dir(), kTree));
  const auto trees = ReadDamagedTrees(root.dir());
  ASSERT_TRUE(trees.ok()) << trees.status();
  EXPECT_EQ(*trees, (std::map<std::string, DamagedTree>{{kTree, Damage()}}));
  ASSERT_TRUE(RemoveDamagedTree(root.dir(), kTree).ok());
  EXPECT_FALSE(IsDamagedTree(root.dir(), kTree));
}

TEST(DamagedTree, UnreadableRecordKeepsTreeOutOfUse) {
  const Root root;
  root.Write(DamagedTreePath(kTree), "half a rec");
  const auto trees = ReadDamagedTrees(root.dir());
  ASSERT_TRUE(trees.ok());
  EXPECT_TRUE(trees->contains(kTree));
}

TEST(DamagedTree, IsNeverActivated) {
  const Root root;
  ASSERT_TRUE(root.dir().MakeDir(GenerationPath(kTree), 0777).ok());
  ASSERT_TRUE(WriteDamagedTree(root.dir(), kTree, Damage()).ok());
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ActivateGeneration(root.dir(), kMount, kTree, {.now = kNow})));
}

TEST(DamagedTree, IsNotUsedToRepairLink) {
  const Root root;
  ASSERT_TRUE(root.dir().MakeDir(GenerationPath(kTree), 0777).ok());
  ASSERT_TRUE(ActivateGeneration(root.dir(), kMount, kTree, {.now = kNow}).ok());
  ASSERT_TRUE(WriteDamagedTree(root.dir(), kTree, Damage()).ok());
  ASSERT_TRUE(root.dir().Remove(MountPath(kMount)).ok());
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, {.now = kNow}).ok());
  const auto link = ScanLink(root.dir(), kMount);
  ASSERT_TRUE(link.ok() && link->has_value());
  EXPECT_TRUE(IsColdId((*link)->generation)) << (*link)->generation;
}

TEST(DamagedTree, IsRecordedWhileTreeExists) {
  const Root root;
  ASSERT_TRUE(root.dir().MakeDir(GenerationPath(kTree), 0777).ok());
  ASSERT_TRUE(WriteDamagedTree(root.dir(), kTree, Damage()).ok());
  ASSERT_TRUE(RepairJournal(root.dir(), kNow).ok());
  EXPECT_TRUE(ScanInventory(root.dir())->damaged.contains(kTree));
  ASSERT_TRUE(root.dir().Remove(GenerationPath(kTree)).ok());
  ASSERT_TRUE(RepairJournal(root.dir(), kNow).ok());
  EXPECT_TRUE(ScanInventory(root.dir())->damaged.empty());
}

}  // namespace
}  // namespace cachewarm::agent

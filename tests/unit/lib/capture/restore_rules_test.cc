// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/restore_rules.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/fakes/temp_dir.h"

namespace cachewarm::capture {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kTuned[] = "flashinfer/.cache/flashinfer/autotune/v2/00ff/entries/";
constexpr char kRank[] = "sglang/flashinfer/autotune/0.7.0/90a/rank";

bundle::Entry EntryOf(const std::string& path, const std::string& text) {
  return {.path = path, .bytes = static_cast<int64_t>(text.size()), .digest = DigestOf(text)};
}

const caches::CacheTable& Table() {
  return caches::CacheTable::AllPresets();
}

class AutotuneSets : public ::testing::Test {
 protected:
  fs::Dir Tree() { return *fs::Dir::Open(temp_.path()); }
  std::vector<TreeFile> List() { return ListTree(Tree(), Table())->files; }

  TempDir temp_;
};

TEST_F(AutotuneSets, WholeSetIsARivalIfOneOfItsFilesHasOtherBytes) {
  const std::vector<bundle::Entry> entries = {
      EntryOf(std::string(kTuned) + "01.json", "a"), EntryOf(std::string(kTuned) + "02.json", "b"),
      EntryOf("inductor/ab/cab.py", "code"), EntryOf("inductor/ab/00.best_config", "{}")};
  EXPECT_THAT(FindRivals(entries, Table(), {{std::string(kTuned) + "02.json", DigestOf("other")}}),
              ElementsAre(true, true, false, false));
  EXPECT_THAT(FindRivals(entries, Table(), {{"inductor/ab/00.best_config", DigestOf("{\"a\":1}")}}),
              ElementsAre(false, false, false, true));
}

TEST_F(AutotuneSets, EqualOrDisjointResultsAreNoRivals) {
  const std::vector<bundle::Entry> entries = {EntryOf(std::string(kTuned) + "01.json", "a"),
                                              EntryOf(std::string(kTuned) + "02.json", "b")};
  EXPECT_THAT(FindRivals(entries, Table(), {{std::string(kTuned) + "01.json", DigestOf("a")}}),
              IsEmpty());
  EXPECT_THAT(FindRivals(entries, Table(), {{std::string(kTuned) + "03.json", DigestOf("c")}}),
              IsEmpty());
  EXPECT_THAT(FindRivals(entries, Table(), {}), IsEmpty());
}

TEST_F(AutotuneSets, UnreadableResultIsARival) {
  std::filesystem::create_directories(temp_ / (std::string(kRank) + "0.json"));
  const std::vector<bundle::Entry> entries = {EntryOf(std::string(kRank) + "0.json", "a")};
  const AutotuneResults present = ReadAutotuneResults(Tree(), entries, Table());
  EXPECT_THAT(present, ElementsAre(Pair(std::string(kRank) + "0.json", Digest())));
  EXPECT_THAT(FindRivals(entries, Table(), present), ElementsAre(true));
}

TEST_F(AutotuneSets, OnlyAutotuneResultsAreReadFromATree) {
  temp_.Write("inductor/ab/00.best_config", "{}");
  temp_.Write("inductor/ab/cab.py", "code");
  const std::vector<bundle::Entry> entries = {EntryOf("inductor/ab/00.best_config", "1"),
                                              EntryOf("inductor/ab/11.best_config", "2"),
                                              EntryOf("inductor/ab/cab.py", "3")};
  EXPECT_THAT(ReadAutotuneResults(Tree(), entries, Table()),
              ElementsAre(Pair("inductor/ab/00.best_config", DigestOf("{}"))));
  EXPECT_THAT(AutotuneResultsOf(entries, Table(), {true, false, false}),
              ElementsAre(Pair("inductor/ab/11.best_config", DigestOf("2"))));
}

TEST(FindUnwanted, LocksInABundleAreNotRestored) {
  const std::vector<bundle::Entry> entries = {EntryOf("torch_extensions/ops/lock", ""),
                                              EntryOf("torch_extensions/ops/ops.so", "code"),
                                              EntryOf(std::string(kRank) + "0.json", "a")};
  EXPECT_THAT(FindUnwanted(entries, Table(), {}), ElementsAre(true, false, false));
  EXPECT_THAT(FindUnwanted(entries, Table(), {{std::string(kRank) + "0.json", DigestOf("b")}}),
              ElementsAre(true, false, true));
  EXPECT_THAT(FindUnwanted({entries[1]}, Table(), {}), IsEmpty());
}

TEST_F(AutotuneSets, SetOfTheStoreWinsUnlessTheDirectoryHasEveryPath) {
  temp_.Write(std::string(kRank) + "0.json", "new");
  const bundle::Config stored{.entries = {EntryOf(std::string(kRank) + "0.json", "old"),
                                          EntryOf(std::string(kRank) + "1.json", "old")}};
  EXPECT_THAT(SetsToLeaveOut(stored, List(), Tree()), ElementsAre("sglang/flashinfer/autotune"));
  temp_.Write(std::string(kRank) + "1.json", "new");
  EXPECT_THAT(SetsToLeaveOut(stored, List(), Tree()), IsEmpty());
}

TEST_F(AutotuneSets, SetThatExtendsTheStoreIsPublished) {
  temp_.Write(std::string(kRank) + "0.json", "old");
  temp_.Write(std::string(kRank) + "2.json", "new");
  const bundle::Config stored{.entries = {EntryOf(std::string(kRank) + "0.json", "old"),
                                          EntryOf(std::string(kRank) + "1.json", "old")}};
  EXPECT_THAT(SetsToLeaveOut(stored, List(), Tree()), IsEmpty());
}

}  // namespace
}  // namespace cachewarm::capture

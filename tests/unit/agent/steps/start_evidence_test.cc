// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/start_evidence.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/sync/tree_names.h"
#include "agent/tree/journal.h"
#include "agent/tree/links.h"
#include "agent/tree/root_layout.h"
#include "lib/capture/engine_factors.h"
#include "lib/fs/file.h"
#include "tests/unit/agent/steps/starts_fixture.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

const std::string kWarmTree(32, 'a');
constexpr char kOtherIndexFile[] = "inductor/fxgraph/zz/fnew/e";

class StartsTest : public StartsFixture {
 protected:
  StartsTest() : starts_(context_, tables_, spans_) {
    tables_.Update({{.uid = kMount.uid, .ns = kMount.ns, .name = kMount.name}});
  }

  Starts starts_;
};

TEST_F(StartsTest, ReportsNothingBeforeWindowCloses) {
  watcher_.SetEvents(kMount.uid, {Event(FileEventType::kRead, 2, kIndexFile)});
  starts_.Poll({Window("a", 0, 0)});
  EXPECT_TRUE(starts_.Statuses().empty());
  EXPECT_TRUE(starts_.IsWaiting());
  clock_.Advance(seconds(6));
  starts_.Poll({Window("a", 0, 5)});  // 5 is rounded down, so more events of the start may follow
  EXPECT_TRUE(starts_.Statuses().empty());
  clock_.Advance(seconds(2));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().size(), 1U);
  EXPECT_FALSE(starts_.IsWaiting());
}

TEST_F(StartsTest, StartWithOnlyReadsIsAHit) {
  watcher_.SetEvents(kMount.uid, {Event(FileEventType::kOpened, 2, kIndexFile),
                                  Event(FileEventType::kRead, 2, kIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  const api::StartEvidence evidence = starts_.Statuses().at(0);
  EXPECT_EQ(evidence.pod_uid, "a");
  EXPECT_EQ(evidence.result, api::StartResult::kHit);
  EXPECT_EQ(evidence.opened, 1);
  EXPECT_EQ(evidence.written, 0);
}

TEST_F(StartsTest, MissWithoutBundleIsACleanColdStart) {
  watcher_.SetEvents(ColdId(kMount, 0), {Event(FileEventType::kMovedTo, 3, kIndexFile)});
  ASSERT_TRUE(PrepareMount(root_.dir(), kMount, {.now = begin_ - seconds(100)}).ok());
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kCold);
}

TEST_F(StartsTest, MissWithBundleIsAMiss) {
  Activate(kWarmTree, -100);
  watcher_.SetEvents(kWarmTree, {Event(FileEventType::kMovedTo, 3, kIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kMiss);
}

// The tree of a bundle whose builder had other key factors, in which a pod compiles.
class KeyFactorsTest : public StartsTest {
 protected:
  KeyFactorsTest() {
    scratch_.Write("salt", std::string(kSalt));
    context_.factor_salt_file = scratch_.path() + "/salt";
    Activate(kWarmTree, -100);
    watcher_.SetEvents(kWarmTree, {Event(FileEventType::kMovedTo, 3, kIndexFile)});
    Record(Of("{\"env\": {\"VLLM_USE_V1\": \"1\", \"VLLM_SAME\": \"1\"}}"));
  }

  static capture::EngineFactors Of(std::string_view text) {
    return capture::HashEngineFactors(text, "rank_0_0/backbone", kSalt).value();
  }
  void Record(const capture::EngineFactors& builder) {
    const Digest digest = Digest::FromHex(std::string(64, 'a'));
    GenerationRecord record{.id = kWarmTree, .mount = kMount, .digests = {digest}};
    if (!builder.empty()) {
      record.engine_factors = {{.digest = digest, .factors = builder}};
    }
    ASSERT_TRUE(WriteGenerationRecord(root_.dir(), record, {}).ok());
  }
  // Writes what vLLM writes, at this second of the start.
  void WriteFactors(const std::string& text, int second) {
    const std::string path =
        GenerationPath(kWarmTree) +
        "/vllm/torch_compile_cache/ab/rank_0_0/backbone/cache_key_factors.json";
    ASSERT_TRUE(root_.dir().MakeDirs(path.substr(0, path.rfind('/')), kTreeMode).ok());
    const auto file = root_.dir().CreateFile(path, 0644);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(fs::WriteAll(*file, text).ok());
    const int64_t at =
        std::chrono::nanoseconds((begin_ + seconds(second)).time_since_epoch()).count();
    const timespec time{.tv_sec = at / 1'000'000'000, .tv_nsec = at % 1'000'000'000};
    const timespec times[] = {time, time};
    ASSERT_EQ(utimensat(root_.dir().fd(), path.c_str(), times, 0), 0);
  }
  api::StartEvidence Evaluate() {
    clock_.Advance(seconds(60));
    starts_.Poll({Window("a", 0, 5)});
    return starts_.Statuses().at(0);
  }

  static constexpr std::string_view kSalt = "0123456789abcdef0123456789abcdef";
  Scratch scratch_;
};

TEST_F(KeyFactorsTest, MissNamesThePartsOfTheKeyThatDiffer) {
  WriteFactors("{\"env\": {\"VLLM_USE_V1\": \"0\", \"VLLM_SAME\": \"1\"}}", 2);
  const api::StartEvidence evidence = Evaluate();
  EXPECT_EQ(evidence.result, api::StartResult::kMiss);
  EXPECT_EQ(evidence.differing_key_factors, std::vector<std::string>{"env.VLLM_USE_V1"});
}

TEST_F(KeyFactorsTest, FileOfAnEarlierStartNamesNothing) {
  WriteFactors("{\"env\": {\"VLLM_USE_V1\": \"0\"}}", -20);
  EXPECT_TRUE(Evaluate().differing_key_factors.empty());
}

TEST_F(KeyFactorsTest, MissBesideAnotherStartInTheTreeNamesNothing) {
  WriteFactors("{\"env\": {\"VLLM_USE_V1\": \"0\"}}", 2);
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5), Window("b", 1, 6)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kMiss);
  EXPECT_TRUE(starts_.Statuses().at(0).differing_key_factors.empty()) << "may be those of b";
}

TEST_F(KeyFactorsTest, HitNamesNothing) {
  watcher_.SetEvents(kWarmTree, {Event(FileEventType::kRead, 2, kIndexFile)});
  WriteFactors("{\"env\": {\"VLLM_USE_V1\": \"0\"}}", 2);
  const api::StartEvidence evidence = Evaluate();
  EXPECT_EQ(evidence.result, api::StartResult::kHit);
  EXPECT_TRUE(evidence.differing_key_factors.empty());
}

TEST_F(KeyFactorsTest, BundleWithoutKeyFactorsNamesNothing) {
  Record({});
  WriteFactors("{\"env\": {\"VLLM_USE_V1\": \"0\"}}", 2);
  EXPECT_TRUE(Evaluate().differing_key_factors.empty());
}

TEST_F(KeyFactorsTest, OneOfTwoBundlesWithoutKeyFactorsNamesNothing) {
  const Digest other = Digest::FromHex(std::string(64, 'b'));
  ASSERT_TRUE(
      WriteGenerationRecord(
          root_.dir(),
          {.id = kWarmTree,
           .mount = kMount,
           .digests = {Digest::FromHex(std::string(64, 'a')), other},
           .engine_factors = {{.digest = other, .factors = Of("{\"code_hash\": \"other\"}")}}},
          {})
          .ok());
  WriteFactors("{\"code_hash\": \"same\"}", 2);
  EXPECT_TRUE(Evaluate().differing_key_factors.empty()) << "the start may have missed the other";
}

TEST_F(KeyFactorsTest, UnknownSaltNamesNothing) {
  std::filesystem::remove(scratch_ / "salt");
  WriteFactors("{\"env\": {\"VLLM_USE_V1\": \"0\"}}", 2);
  EXPECT_TRUE(Evaluate().differing_key_factors.empty());
  EXPECT_TRUE(log_.warnings().empty()) << "the operator may not have made it yet";
}

TEST_F(KeyFactorsTest, UntrustedFileNamesNothingAndIsLoggedWithoutItsText) {
  WriteFactors("{\"env\": \"sk-secret", 2);
  EXPECT_TRUE(Evaluate().differing_key_factors.empty());
  EXPECT_EQ(log_.warnings().size(), 1U);
  EXPECT_FALSE(log_.Has("sk-secret")) << log_.Text();
}

TEST_F(StartsTest, CompileInAnotherTreeOfTheWarmupIsNotOfThisStart) {
  const std::string before = std::string(32, 'b');  // a running pod still uses it
  Activate(before, -500);
  Activate(kWarmTree, -100);
  watcher_.SetEvents(before, {Event(FileEventType::kMovedTo, 3, kOtherIndexFile)});
  watcher_.SetEvents(kWarmTree, {Event(FileEventType::kRead, 2, kIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kHit);
  EXPECT_EQ(starts_.Statuses().at(0).written, 0);
}

TEST_F(StartsTest, TreeActivatedDuringTheStartIsNotTheMountedOne) {
  ASSERT_TRUE(PrepareMount(root_.dir(), kMount, {.now = begin_ - seconds(100)}).ok());
  Activate(kWarmTree, 3);
  watcher_.SetEvents(ColdId(kMount, 0), {Event(FileEventType::kMovedTo, 4, kIndexFile)});
  watcher_.SetEvents(kWarmTree, {Event(FileEventType::kRead, 4, kIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kCold);
  EXPECT_EQ(starts_.Statuses().at(0).opened, 0);
}

TEST_F(StartsTest, MissIsColdIfOnlyThePossibleTreeWithoutBundleHasEvents) {
  ASSERT_TRUE(PrepareMount(root_.dir(), kMount, {.now = begin_ - seconds(100)}).ok());
  Activate(kWarmTree, 1);  // API times are whole seconds, so the pod may have started after it
  watcher_.SetEvents(ColdId(kMount, 0), {Event(FileEventType::kMovedTo, 4, kIndexFile)});
  watcher_.SetEvents(kWarmTree, {});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kCold);
}

TEST_F(StartsTest, CompileInOneOfTwoPossibleTreesIsUnknown) {
  const std::string before = std::string(32, 'b');
  Activate(before, -500);
  Activate(kWarmTree, -2);  // kubelet may have resolved the mount before
  watcher_.SetEvents(before, {Event(FileEventType::kMovedTo, 3, kOtherIndexFile)});
  watcher_.SetEvents(kWarmTree, {Event(FileEventType::kRead, 2, kIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kUnknown);
}

TEST_F(StartsTest, PartialHitInOneOfTwoPossibleTreesIsPartial) {
  const std::string before = std::string(32, 'b');
  Activate(before, -500);
  Activate(kWarmTree, -2);
  watcher_.SetEvents(before, {});
  watcher_.SetEvents(kWarmTree, {Event(FileEventType::kRead, 2, kIndexFile),
                                 Event(FileEventType::kMovedTo, 3, kOtherIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kPartial);
}

TEST_F(StartsTest, TreeThatWasEvictedIsNotAPossibleOne) {
  const std::string before = std::string(32, 'b');
  Activate(before, -500);
  Activate(kWarmTree, -2);
  ASSERT_TRUE(root_.dir().Remove(GenerationPath(before)).ok());
  watcher_.SetEvents(kWarmTree, {Event(FileEventType::kRead, 2, kIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kHit);
}

TEST_F(StartsTest, PossibleTreeThatIsNotWatchedIsUnknown) {
  Activate(std::string(32, 'b'), -500);
  Activate(kWarmTree, -2);
  watcher_.SetEvents(kWarmTree, {Event(FileEventType::kRead, 2, kIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kUnknown);
}

TEST_F(StartsTest, IncompleteRecordIsUnknown) {
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kUnknown);
}

TEST_F(StartsTest, EvaluatesEachStartOnce) {
  watcher_.SetEvents(kMount.uid, {Event(FileEventType::kRead, 2, kIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  const auto before = starts_.Statuses();
  watcher_.SetEvents(kMount.uid, {});
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses(), before);
}

TEST_F(StartsTest, ForgetsStartsRemovedFromSpec) {
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5), Window("b", 10, 15)});
  starts_.Poll({Window("b", 10, 15)});
  ASSERT_EQ(starts_.Statuses().size(), 1U);
  EXPECT_EQ(starts_.Statuses()[0].pod_uid, "b");
}

TEST_F(StartsTest, RestartKeepsReportedResults) {
  const api::StartEvidence reported{.pod_uid = "a", .result = api::StartResult::kHit, .opened = 7};
  starts_.Adopt({reported});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses(), std::vector<api::StartEvidence>{reported});
}

TEST_F(StartsTest, AmbiguousConcurrentStartsAreUnknown) {
  watcher_.SetEvents(kMount.uid, {Event(FileEventType::kRead, 2, kIndexFile),
                                  Event(FileEventType::kMovedTo, 3, kOtherIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5), Window("b", 1, 6)});
  for (const api::StartEvidence& evidence : starts_.Statuses()) {
    EXPECT_EQ(evidence.result, api::StartResult::kUnknown) << evidence.pod_uid;
  }
}

TEST_F(StartsTest, StartBesideABuilderInAnEarlierTreeIsPartial) {
  Activate(std::string(32, 'b'), -500);
  Activate(kWarmTree, -40);
  watcher_.SetEvents(kWarmTree, {Event(FileEventType::kRead, 2, kIndexFile),
                                 Event(FileEventType::kMovedTo, 3, kOtherIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5), Window("builder", -300, 1)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kPartial);
}

// File events do not name the process that wrote a file.
TEST_F(StartsTest, PartialStartBesideAPodThatCompilesIsUnknown) {
  Activate(kWarmTree, -1000);
  watcher_.SetEvents(kWarmTree, {Event(FileEventType::kMovedTo, -60, "inductor/fxgraph/aa/fa/e"),
                                 Event(FileEventType::kRead, 2, kIndexFile),
                                 Event(FileEventType::kMovedTo, 3, kOtherIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kUnknown);
  EXPECT_EQ(starts_.Statuses().at(0).written, 1);
}

TEST_F(StartsTest, CompileOfAnEarlierStartOrLongAgoLeavesAStartPartial) {
  Activate(kWarmTree, -5000);
  watcher_.SetEvents(kWarmTree, {Event(FileEventType::kMovedTo, -700, "inductor/fxgraph/aa/fa/e"),
                                 Event(FileEventType::kMovedTo, -60, "inductor/fxgraph/ab/fb/e"),
                                 Event(FileEventType::kRead, 2, kIndexFile),
                                 Event(FileEventType::kMovedTo, 3, kOtherIndexFile)});
  spans_.Update({.starts = {Window("before", -70, -50)}});
  spans_.Update({});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kPartial);
}

TEST_F(StartsTest, HitBesideAPodThatCompiledIsAHit) {
  Activate(kWarmTree, -1000);
  watcher_.SetEvents(kWarmTree, {Event(FileEventType::kMovedTo, -60, "inductor/fxgraph/aa/fa/e"),
                                 Event(FileEventType::kRead, 2, kIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5)});
  EXPECT_EQ(starts_.Statuses().at(0).result, api::StartResult::kHit);
}

TEST_F(StartsTest, ConcurrentStartsWithOnlyReadsAreHits) {
  watcher_.SetEvents(kMount.uid, {Event(FileEventType::kRead, 2, kIndexFile)});
  clock_.Advance(seconds(60));
  starts_.Poll({Window("a", 0, 5), Window("b", 1, 6)});
  for (const api::StartEvidence& evidence : starts_.Statuses()) {
    EXPECT_EQ(evidence.result, api::StartResult::kHit) << evidence.pod_uid;
  }
}

TEST(Overlap, RequiresSameDirectory) {
  const WallTime zero{};
  const auto window = [&](const std::string& uid, const std::string& run_as, int started,
                          int ready) {
    return api::StartWindow{.warmup_uid = uid,
                            .run_as = run_as,
                            .started_time = zero + seconds(started),
                            .ready_time = zero + seconds(ready)};
  };
  const api::StartWindow base = window("u", "image", 100, 110);
  EXPECT_TRUE(Overlap(base, window("u", "image", 105, 120)));
  EXPECT_TRUE(Overlap(base, window("u", "image", 112, 120))) << "windows are widened";
  EXPECT_TRUE(Overlap(base, window("u", "image", 105, 0))) << "not ready yet";
  EXPECT_FALSE(Overlap(base, window("u", "image", 120, 130)));
  EXPECT_FALSE(Overlap(base, window("u", "image", 80, 90)));
  EXPECT_FALSE(Overlap(base, window("v", "image", 105, 120)));
  EXPECT_FALSE(Overlap(base, window("u", "u1000", 105, 120)));
}

}  // namespace
}  // namespace cachewarm::agent

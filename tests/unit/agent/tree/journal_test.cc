// SPDX-License-Identifier: Apache-2.0

#include "agent/tree/journal.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "agent/sync/tree_names.h"
#include "agent/tree/links.h"
#include "agent/tree/root_layout.h"
#include "fmt/format.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

const Mount kMount{"team", "llama", "uid-1", "image"};
const std::string kA(32, 'a');
const std::string kB(32, 'b');
const std::string kC(32, 'c');

WallTime At(int second) {
  return WallTime(seconds(1'800'000'000 + second));
}

TEST(GenerationRecord, SurvivesARoundTrip) {
  const Root root;
  const GenerationRecord record{.id = kA,
                                .mount = kMount,
                                .digests = {DigestOf("1"), DigestOf("2")},
                                .files = 2,
                                .bytes = 30,
                                .fetch_seconds = 1.5};
  const std::vector<EntryRecord> entries = {
      {"inductor/a.so", "torchinductor", DigestOf("so"), 10, 77, 0, 1'800'000'000'000'000'001},
      {"triton/ä", "triton", DigestOf("t"), 20, UINT64_MAX / 4, 5, 6},
      {"triton/b", "triton", DigestOf("b"), 20, UINT64_MAX - 1, 5, 6}};
  ASSERT_TRUE(WriteGenerationRecord(root.dir(), record, entries).ok());
  EXPECT_EQ(*ReadGenerationRecord(root.dir(), kA), record);
  EXPECT_EQ(*ReadEntryRecords(root.dir(), kA), entries);
}

TEST(GenerationRecord, IsRejectedIfDamaged) {
  const Root root;
  EXPECT_EQ(ReadGenerationRecord(root.dir(), kA).status().code(), absl::StatusCode::kNotFound);
  const std::vector<std::string> damaged = {
      "",
      "{",
      "[]",
      "7",
      R"({"id": 3})",
      R"({"id": "other"})",
      R"({"id": ")" + kA + R"(", "digests": ["sha256:nonsense"]})",
      std::string(2 << 20, ' ')};
  for (const std::string& text : damaged) {
    root.Write(GenerationRecordPath(kA), text);
    EXPECT_FALSE(ReadGenerationRecord(root.dir(), kA).ok()) << text.substr(0, 40);
  }
}

TEST(GenerationRecord, HasAtMost64Digests) {
  const Root root;
  GenerationRecord record{.id = kA, .mount = kMount, .digests = {}};
  for (int i = 0; i < 64; ++i) {
    record.digests.push_back(DigestOf(std::to_string(i)));
  }
  ASSERT_TRUE(WriteGenerationRecord(root.dir(), record, {}).ok());
  EXPECT_EQ(*ReadGenerationRecord(root.dir(), kA), record);
  record.digests.push_back(DigestOf("64"));
  ASSERT_TRUE(WriteGenerationRecord(root.dir(), record, {}).ok());
  EXPECT_FALSE(ReadGenerationRecord(root.dir(), kA).ok());
}

TEST(Activations, KeepTheirOrderAndAreBounded) {
  const Root root;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(RecordActivation(root.dir(), kMount, {ColdId(kMount, i), At(i)}).ok());
  }
  const std::vector<Activation> activations = ReadActivations(root.dir(), kMount);
  ASSERT_EQ(activations.size(), kActivationsMax);
  EXPECT_EQ(activations.back(), (Activation{ColdId(kMount, 99), At(99)}));
  EXPECT_EQ(activations.front(), (Activation{ColdId(kMount, 36), At(36)}));
}

TEST(Activations, AreEmptyForUnreadableFile) {
  const Root root;
  root.Write(LinkRecordPath(kMount), "{\"activations\": [{\"generation\": \"../../etc\"}]}");
  EXPECT_TRUE(ReadActivations(root.dir(), kMount).empty());
  root.Write(LinkRecordPath(kMount), "\0\0\0");
  EXPECT_TRUE(ReadActivations(root.dir(), kMount).empty());
}

TEST(Activations, AreEmptyForALongerListThanAnyAgentWrites) {
  const Root root;
  for (const size_t count : {4 * kActivationsMax, 4 * kActivationsMax + 1}) {
    std::string list;
    for (size_t i = 0; i < count; ++i) {
      list += fmt::format(R"({}{{"generation":"{}","atMilliseconds":{}}})", i == 0 ? "" : ",",
                          ColdId(kMount, 1), i);
    }
    root.Write(LinkRecordPath(kMount), fmt::format(R"({{"activations":[{}]}})", list));
    EXPECT_EQ(ReadActivations(root.dir(), kMount).empty(), count > 4 * kActivationsMax) << count;
  }
}

TEST(RepairActivations, DropsActivationWithoutFlip) {
  const Root root;
  ASSERT_TRUE(RecordActivation(root.dir(), kMount, {kA, At(0)}).ok());
  ASSERT_TRUE(RecordActivation(root.dir(), kMount, {kB, At(10)}).ok());
  ASSERT_TRUE(RepairActivations(root.dir(), kMount, kA, At(20)).ok());
  EXPECT_EQ(ReadActivations(root.dir(), kMount), (std::vector<Activation>{{kA, At(0)}}));
}

TEST(RepairActivations, RecordsExternallySetLink) {
  const Root root;
  ASSERT_TRUE(RecordActivation(root.dir(), kMount, {kA, At(0)}).ok());
  ASSERT_TRUE(RepairActivations(root.dir(), kMount, kC, At(20)).ok());
  EXPECT_EQ(ReadActivations(root.dir(), kMount).back(), (Activation{kC, At(20)}));
}

TEST(RepairActivations, KeepsConfirmedJournal) {
  const Root root;
  ASSERT_TRUE(RecordActivation(root.dir(), kMount, {kA, At(0)}).ok());
  ASSERT_TRUE(RepairActivations(root.dir(), kMount, kA, At(20)).ok());
  EXPECT_EQ(ReadActivations(root.dir(), kMount), (std::vector<Activation>{{kA, At(0)}}));
}

TEST(GenerationsAt, FindsTreesThatContainerMayHaveMounted) {
  const std::vector<Activation> past = {{kA, At(0)}, {kB, At(100)}, {kC, At(200)}};
  using Names = std::vector<std::string>;
  struct Case {
    int started;
    Names expected;
  };
  const std::vector<Case> cases = {
      {50, {kA}},
      {99, {kB, kA}},   // API seconds are rounded down: 99.9 may be after the flip
                        // at 100
      {100, {kB, kA}},  // mounted before it counted as started
      {129, {kB, kA}},
      {130, {kB}},
      {160, {kB}},
      {210, {kC, kB}},
      {500, {kC}},
      {-50, {kA}},  // before everything that is remembered
  };
  for (const Case& each : cases) {
    EXPECT_EQ(GenerationsAt(past, At(each.started), Duration(30'000)), each.expected)
        << each.started;
  }
  EXPECT_TRUE(GenerationsAt({}, At(0), Duration(30'000)).empty());
}

TEST(GenerationsAt, ReturnsTreeOnceThatWasActiveTwice) {
  const std::vector<Activation> past = {{kA, At(0)}, {kB, At(10)}, {kA, At(20)}};
  EXPECT_EQ(GenerationsAt(past, At(25), Duration(30'000)), (std::vector<std::string>{kA, kB}));
}

TEST(CaptureRecords, SurviveTheProcess) {
  const Root root;
  const api::CaptureStatus pushed{.id = "pod-1",
                                  .state = api::CaptureState::kPushed,
                                  .digest = DigestOf("x"),
                                  .bytes = 10,
                                  .files = 3,
                                  .native = false,
                                  .compile_seconds = 21.5,
                                  .left_behind = {.files = 2, .bytes = 7, .directories = {"a/b"}}};
  ASSERT_TRUE(WriteCaptureRecord(root.dir(), pushed).ok());
  EXPECT_EQ(ReadCaptureRecords(root.dir()), std::vector<api::CaptureStatus>{pushed});
  ASSERT_TRUE(RemoveCaptureRecord(root.dir(), "pod-1").ok());
  EXPECT_TRUE(ReadCaptureRecords(root.dir()).empty());
}

TEST(CaptureRecords, UnsafeIdsStayBelowTheStateFolder) {
  const Root root;
  const api::CaptureStatus status{.id = "../../../etc/passwd", .state = api::CaptureState::kPushed};
  ASSERT_TRUE(WriteCaptureRecord(root.dir(), status).ok());
  ASSERT_EQ(ReadCaptureRecords(root.dir()).size(), 1U);
  EXPECT_EQ(ReadCaptureRecords(root.dir())[0].id, status.id);
}

TEST(CaptureRecords, SkipsUnreadableRecords) {
  const Root root;
  root.Write(std::string(kCaptureRecords) + "/a.json", "{");
  root.Write(std::string(kCaptureRecords) + "/b.json", "{}");
  EXPECT_TRUE(ReadCaptureRecords(root.dir()).empty());
}

TEST(RepairJournal, DropsUnconfirmedActivationsAndOrphanRecords) {
  const Root root;
  ASSERT_TRUE(PrepareMount(root.dir(), kMount, {.now = At(0)}).ok());
  ASSERT_TRUE(RecordActivation(root.dir(), kMount, {kA, At(10)}).ok());
  ASSERT_TRUE(WriteGenerationRecord(root.dir(), {.id = kA, .mount = kMount}, {}).ok());
  ASSERT_TRUE(RepairJournal(root.dir(), At(20)).ok());
  EXPECT_EQ(ReadActivations(root.dir(), kMount),
            (std::vector<Activation>{{ColdId(kMount, 0), At(0)}}));
  EXPECT_FALSE(root.Exists(GenerationRecordPath(kA)));
  EXPECT_FALSE(root.Exists(EntriesRecordPath(kA)));
}

TEST(RepairJournal, RemovesRecordsOfUncommittedTree) {
  for (const std::string half : {"", "{\"id\": \""}) {
    const Root root;
    root.Write(StagingPath(kA) + "/triton/half", half);
    root.Write(EntriesRecordPath(kA), half);
    root.Write(GenerationRecordPath(kA), half);
    ASSERT_TRUE(RepairJournal(root.dir(), At(20)).ok());
    EXPECT_FALSE(root.Exists(GenerationRecordPath(kA)));
    EXPECT_FALSE(root.Exists(EntriesRecordPath(kA)));
  }
}

}  // namespace
}  // namespace cachewarm::agent

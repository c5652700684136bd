// SPDX-License-Identifier: Apache-2.0
// The files of the journal, byte for byte: an agent reads the records of the version before it, and
// the version before it reads the records of this one.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "lib/fs/file.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;

const Mount kMount{"team", "llama", "uid-1", "image"};
const std::string kTree(32, 'a');

std::string Text(const Root& root, const std::string& path) {
  return fs::ReadFile(root.dir(), path, 1 << 20).value_or("");
}

TEST(JournalFormat, GenerationAndItsEntriesKeepTheirBytes) {
  const GenerationRecord record{.id = kTree,
                                .mount = kMount,
                                .digests = {DigestOf("1"), DigestOf("2")},
                                .files = 2,
                                .bytes = 30,
                                .fetch_seconds = 1.5,
                                .usage = {.bytes = 16384, .inodes = 4}};
  const std::vector<EntryRecord> entries = {
      {"inductor/a.so", "torchinductor", DigestOf("so"), 10, 77, 0, 1'800'000'000'000'000'001},
      {"triton/ä", "triton", DigestOf("t"), 20, UINT64_MAX / 4, 5, 6}};
  const std::string text =
      R"({"bytes":30,"digests":[)"
      R"("sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",)"
      R"("sha256:d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35"],)"
      R"("diskBytes":16384,"engineFactors":[],)"
      R"("fetchSeconds":1.5,"files":2,"id":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","inodes":4,)"
      R"("name":"llama","namespace":"team","runAs":"image","warmupUID":"uid-1"})"
      "\n";
  const std::string lines =
      "inductor/a.so\ttorchinductor\t"
      "a1d9890884c1b4b960c279cfe7554a900d169422d6cec980beef67761487d3b9\t10\t77\t0\t"
      "1800000000000000001\n"
      "triton/ä\ttriton\te3b98a4da31a127d4bde6e43033f66ba274cab0eb7eb1c70ec41402bf6273dd8\t20\t"
      "4611686018427387903\t5\t6\n";
  const Root root;
  root.Write(GenerationRecordPath(kTree), text);
  root.Write(EntriesRecordPath(kTree), lines);
  EXPECT_EQ(*ReadGenerationRecord(root.dir(), kTree), record);
  EXPECT_EQ(*ReadEntryRecords(root.dir(), kTree), entries);
  const Root written;
  ASSERT_TRUE(WriteGenerationRecord(written.dir(), record, entries).ok());
  EXPECT_EQ(Text(written, GenerationRecordPath(kTree)), text);
  EXPECT_EQ(Text(written, EntriesRecordPath(kTree)), lines);
}

TEST(JournalFormat, ARecordOfAnOlderAgentHasNoDiskUsage) {
  const Root root;
  root.Write(GenerationRecordPath(kTree),
             R"({"bytes":30,"digests":[],"fetchSeconds":1.5,"files":2,)"
             R"("id":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","name":"llama",)"
             R"("namespace":"team","runAs":"image","warmupUID":"uid-1"})");
  const auto record = ReadGenerationRecord(root.dir(), kTree);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->bytes, 30);
  EXPECT_EQ(record->usage, DiskAmount{});
}

TEST(JournalFormat, ActivationKeepsItsBytes) {
  const std::string text = R"({"activations":[{"atMilliseconds":1800000000000,)"
                           R"("generation":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","renew":0}]})"
                           "\n";
  const Activation activation{kTree, WallTime(seconds(1'800'000'000))};
  const Root root;
  root.Write(LinkRecordPath(kMount), text);
  EXPECT_EQ(ReadActivations(root.dir(), kMount), std::vector<Activation>{activation});
  const Root written;
  ASSERT_TRUE(RecordActivation(written.dir(), kMount, activation).ok());
  EXPECT_EQ(Text(written, LinkRecordPath(kMount)), text);
}

TEST(JournalFormat, CaptureKeepsItsBytes) {
  const api::CaptureStatus capture{.id = "pod-1",
                                   .state = api::CaptureState::kPushed,
                                   .digest = DigestOf("x"),
                                   .bytes = 10,
                                   .files = 3,
                                   .native = false,
                                   .compile_seconds = 21.5,
                                   .left_behind = {.files = 2, .bytes = 7, .directories = {"a/b"}}};
  const std::string text =
      R"({"bytes":10,"compileSeconds":21.5,)"
      R"("digest":"sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",)"
      R"("files":3,"id":"pod-1","leftBytes":7,"leftDirectories":["a/b"],"leftFiles":2,)"
      R"("message":"","native":false,"reason":"","state":"Pushed"})"
      "\n";
  const Root root;
  root.Write(CaptureRecordPath(capture.id), text);
  EXPECT_EQ(ReadCaptureRecords(root.dir()), std::vector<api::CaptureStatus>{capture});
  const Root written;
  ASSERT_TRUE(WriteCaptureRecord(written.dir(), capture).ok());
  EXPECT_EQ(Text(written, CaptureRecordPath(capture.id)), text);
}

TEST(JournalFormat, CaptureThatDidNotSucceedIsReadAsFailed) {
  for (const std::string state : {"", R"(,"state":"Failed")", R"(,"state":"Waiting")"}) {
    const Root root;
    root.Write(CaptureRecordPath("pod-1"), R"({"id":"pod-1")" + state + "}");
    const std::vector<api::CaptureStatus> captures = ReadCaptureRecords(root.dir());
    ASSERT_EQ(captures.size(), 1U) << state;
    EXPECT_EQ(captures[0].state, api::CaptureState::kFailed) << state;
  }
}

TEST(JournalFormat, QuarantinedBundleKeepsItsBytes) {
  QuarantinedBundle bundle{.name = {"uid-1", DigestOf("bad")},
                           .reason = "VerifyFailed",
                           .message = "a frame does not match its digest",
                           .failures = 3,
                           .at = WallTime(seconds(1'700'000'000)),
                           .until = WallTime(seconds(1'700'000'060)),
                           .criteria = "1.0"};
  std::string text =
      R"({"atMilliseconds":1700000000000,"criteria":"1.0",)"
      R"("digest":"sha256:2f05d4b689d270cafb02285f35f44866f7dc8a2d368a3f9d1124373eeab31fb1",)"
      R"("failures":3,"message":"a frame does not match its digest","reason":"VerifyFailed",)"
      R"("untilMilliseconds":1700000060000,"warmupUID":"uid-1"})"
      "\n";
  const std::string path = QuarantinedBundlePath("uid-1", bundle.name.digest);
  for (const bool is_retried : {true, false}) {
    if (!is_retried) {
      const std::string until = R"("untilMilliseconds":1700000060000,)";
      text.erase(text.find(until), until.size());
      bundle.until = std::nullopt;
    }
    const Root root;
    root.Write(path, text);
    EXPECT_EQ(ReadQuarantinedBundles(root.dir()), std::vector<QuarantinedBundle>{bundle});
    const Root written;
    ASSERT_TRUE(WriteQuarantinedBundle(written.dir(), bundle).ok());
    EXPECT_EQ(Text(written, path), text);
  }
}

TEST(JournalFormat, DamagedTreeKeepsItsBytes) {
  const DamagedTree tree{.at = WallTime(seconds(1'700'000'000)),
                         .path = "inductor/a",
                         .message = "its content changed",
                         .digest = DigestOf("a"),
                         .inode = 7,
                         .untouched = true};
  const std::string text =
      R"({"atMilliseconds":1700000000000,)"
      R"("digest":"sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",)"
      R"("inode":7,"message":"its content changed","path":"inductor/a","untouched":true})"
      "\n";
  const Root root;
  root.Write(DamagedTreePath(kTree), text);
  const auto trees = ReadDamagedTrees(root.dir());
  ASSERT_TRUE(trees.ok()) << trees.status();
  EXPECT_EQ(*trees, (std::map<std::string, DamagedTree>{{kTree, tree}}));
  const Root written;
  ASSERT_TRUE(WriteDamagedTree(written.dir(), kTree, tree).ok());
  EXPECT_EQ(Text(written, DamagedTreePath(kTree)), text);
}

TEST(JournalFormat, ScrubRecordKeepsItsBytes) {
  const ScrubRecord record{.at = WallTime(seconds(1'700'000'000)),
                           .entries = 20'000,
                           .checked = 12'345,
                           .modified_by_engine = {{.path = "flashinfer/x",
                                                   .bytes = 5,
                                                   .inode = 7,
                                                   .mtime_ns = 1'700'000'000'123'456'789,
                                                   .ctime_ns = 1'700'000'001'000'000'001}}};
  const std::string text =
      R"({"atMilliseconds":1700000000000,"checked":12345,"entries":20000,"modifiedByEngine":[)"
      R"({"bytes":5,"ctime":1700000001000000001,"inode":7,"mtime":1700000000123456789,)"
      R"("path":"flashinfer/x"}]})"
      "\n";
  const Root root;
  root.Write(ScrubRecordPath(kTree), text);
  const auto read = ReadScrubRecord(root.dir(), kTree);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, record);
  const Root written;
  ASSERT_TRUE(WriteScrubRecord(written.dir(), kTree, record).ok());
  EXPECT_EQ(Text(written, ScrubRecordPath(kTree)), text);
}

}  // namespace
}  // namespace cachewarm::agent

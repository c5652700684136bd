// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/fetching/fetch_generation.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/sync/history.h"
#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "lib/base/status.h"
#include "lib/bundle/signature/signature.h"
#include "tests/unit/agent/steps/workbench.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::agent {
namespace {

using Files = std::map<std::string, std::string>;

class FetchTest : public ::testing::Test, protected Workbench {
 protected:
  Digest Publish(const Files& files) {
    const absl::StatusOr<Published> published = PublishFiles(files);
    EXPECT_TRUE(published.ok()) << published.status();
    return published.ok() ? published->publication.digest : Digest();
  }

  absl::Status FaultOf(const std::variant<Fetched, FetchFault>& outcome) {
    const auto* fault = std::get_if<FetchFault>(&outcome);
    return fault == nullptr ? absl::OkStatus() : fault->status;
  }

  static FaultKind KindOf(const std::variant<Fetched, FetchFault>& outcome) {
    const FetchFault& fault = std::get<FetchFault>(outcome);
    return KindOfFault(fault.source, fault.status);
  }

  // Checks that a failed fetch left no files.
  void ExpectNoTrace(const Fetch& step) {
    EXPECT_FALSE(root_.Exists(StagingPath(step.generation)));
    EXPECT_FALSE(root_.Exists(GenerationPath(step.generation)));
    EXPECT_FALSE(root_.Exists(GenerationRecordPath(step.generation)));
  }

  const Files files_ = {
      {kIndexFile, "index"}, {kObjectFile, SharedObject("code")}, {kSourceFile, "int main() {}"}};
};

TEST_F(FetchTest, RestoresCapturedTree) {
  const Fetch step = FetchOf({Publish(files_)});
  const auto outcome = RunFetch(step);
  ASSERT_TRUE(std::holds_alternative<Fetched>(outcome)) << FaultOf(outcome);
  EXPECT_EQ(GenerationFiles(root_.path(), step.generation), files_);
  const Fetched& fetched = std::get<Fetched>(outcome);
  EXPECT_EQ(fetched.files, 3);
  EXPECT_GT(fetched.packed_bytes, 0);
  EXPECT_FALSE(root_.Exists(StagingPath(step.generation)));
}

TEST_F(FetchTest, MakesTreeWritableByAnyUid) {
  const Fetch step = FetchOf({Publish(files_)});
  const mode_t before = ::umask(077);
  const auto outcome = RunFetch(step);
  ::umask(before);
  ASSERT_TRUE(std::holds_alternative<Fetched>(outcome)) << FaultOf(outcome);
  const std::string tree = GenerationPath(step.generation);
  EXPECT_EQ(root_.Mode(tree), 0777U);
  EXPECT_EQ(root_.Mode(tree + "/inductor"), 0777U);
  EXPECT_EQ(root_.Mode(tree + "/inductor/cd"), 0777U);
  EXPECT_EQ(root_.Mode(tree + "/triton"), 0777U) << "folders of caches without files too";
  EXPECT_EQ(root_.Mode(tree + "/" + kObjectFile), 0444U);
}

TEST_F(FetchTest, SetsOwnerOfTree) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs CAP_CHOWN";
  }
  Fetch step = FetchOf({Publish(files_)});
  step.mount.run_as = "u1234";
  ASSERT_TRUE(std::holds_alternative<Fetched>(RunFetch(step)));
  for (const std::string& path : {std::string(), std::string("/inductor/cd"), "/" + kIndexFile}) {
    struct ::stat buffer {};
    ASSERT_EQ(::stat((root_ / (GenerationPath(step.generation) + path)).c_str(), &buffer), 0);
    EXPECT_EQ(buffer.st_uid, 1234U) << path;
  }
}

TEST_F(FetchTest, JournalHasTheKeyFactorsOfTheBuilder) {
  const capture::EngineFactors factors = {{"env.VLLM_USE_V1", "0123456789abcdef"},
                                          {"salt", "01234567"}};
  const auto published = PublishFiles(files_, factors);
  ASSERT_TRUE(published.ok()) << published.status();
  const Digest digest = published->publication.digest;
  const Fetch step = FetchOf({digest});
  ASSERT_TRUE(std::holds_alternative<Fetched>(RunFetch(step)));
  const auto record = ReadGenerationRecord(root_.dir(), step.generation);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->engine_factors,
            (std::vector<BundleEngineFactors>{{.digest = digest, .factors = factors}}));
}

TEST_F(FetchTest, JournalMatchesTree) {
  const Digest digest = Publish(files_);
  const Fetch step = FetchOf({digest});
  ASSERT_TRUE(std::holds_alternative<Fetched>(RunFetch(step)));
  const auto record = ReadGenerationRecord(root_.dir(), step.generation);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->digests, std::vector<Digest>{digest});
  EXPECT_EQ(record->mount, kMount);
  const auto entries = ReadEntryRecords(root_.dir(), step.generation);
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), files_.size());
  for (const EntryRecord& entry : *entries) {
    const auto stat = root_.dir().Stat(GenerationPath(step.generation) + "/" + entry.path);
    ASSERT_TRUE(stat.ok());
    EXPECT_EQ(entry.inode, stat->inode);
    EXPECT_EQ(entry.ctime_ns, stat->ctime_ns);
    EXPECT_EQ(entry.digest, DigestOf(files_.at(entry.path)));
  }
}

TEST_F(FetchTest, FirstBundleWinsInUnion) {
  const Digest first = Publish({{kIndexFile, "first"}, {kOutputFile, "only first"}});
  const Digest second = Publish({{kIndexFile, "second"}, {kSourceFile, "only second"}});
  const Fetch step = FetchOf({first, second});
  const auto outcome = RunFetch(step);
  ASSERT_TRUE(std::holds_alternative<Fetched>(outcome)) << FaultOf(outcome);
  EXPECT_EQ(
      GenerationFiles(root_.path(), step.generation),
      (Files{{kIndexFile, "first"}, {kOutputFile, "only first"}, {kSourceFile, "only second"}}));
}

TEST_F(FetchTest, JournalOfAUnionListsEveryFileOnceByPath) {
  const Digest first = Publish({{kIndexFile, "first"}, {kSourceFile, "only first"}});
  const Digest second = Publish({{kIndexFile, "second"}, {kOutputFile, "only second"}});
  const Fetch source = FetchOf({first});
  ASSERT_TRUE(std::holds_alternative<Fetched>(RunFetch(source)));
  Fetch step = FetchOf({second, first});
  step.sources = {source.generation};  // the first bundle's own file is reused
  ASSERT_TRUE(std::holds_alternative<Fetched>(RunFetch(step)));
  const auto entries = ReadEntryRecords(root_.dir(), step.generation);
  ASSERT_TRUE(entries.ok()) << entries.status();
  std::map<std::string, Digest> digests;
  std::string before;
  for (const EntryRecord& entry : *entries) {
    EXPECT_LT(before, entry.path);
    before = entry.path;
    digests[entry.path] = entry.digest;
    const auto stat = root_.dir().Stat(GenerationPath(step.generation) + "/" + entry.path);
    ASSERT_TRUE(stat.ok());
    EXPECT_EQ(entry.inode, stat->inode);
  }
  EXPECT_EQ(digests, (std::map<std::string, Digest>{{kIndexFile, DigestOf("second")},
                                                    {kSourceFile, DigestOf("only first")},
                                                    {kOutputFile, DigestOf("only second")}}));
}

TEST_F(FetchTest, AutotuneResultsOfATreeComeFromOneBundle) {
  const std::string set = "sglang/flashinfer/autotune/0.7.0/90a/";
  const Digest first = Publish({{kIndexFile, "first"}, {set + "rank0.json", "first"}});
  const Digest second = Publish({{kOutputFile, "only second"},
                                 {set + "rank0.json", "second"},
                                 {set + "rank1.json", "second"}});
  const Fetch step = FetchOf({first, second});
  const auto outcome = RunFetch(step);
  ASSERT_TRUE(std::holds_alternative<Fetched>(outcome)) << FaultOf(outcome);
  const Files expected = {
      {kIndexFile, "first"}, {kOutputFile, "only second"}, {set + "rank0.json", "first"}};
  EXPECT_EQ(GenerationFiles(root_.path(), step.generation), expected);
  EXPECT_EQ(ReadEntryRecords(root_.dir(), step.generation)->size(), expected.size());
  // Also if the files could be taken from a tree of the second bundle.
  const Fetch source = FetchOf({second});
  ASSERT_TRUE(std::holds_alternative<Fetched>(RunFetch(source)));
  ASSERT_TRUE(fs::RemoveTree(root_.dir(), GenerationPath(step.generation)).ok());
  Fetch again = step;
  again.sources = {source.generation};
  ASSERT_TRUE(std::holds_alternative<Fetched>(RunFetch(again)));
  EXPECT_EQ(GenerationFiles(root_.path(), step.generation), expected);
}

TEST_F(FetchTest, AutotuneResultsThatAgreeAreUnited) {
  const std::string set = "sglang/flashinfer/autotune/0.7.0/90a/";
  const Digest first = Publish({{set + "rank0.json", "equal"}});
  const Digest second = Publish({{set + "rank0.json", "equal"}, {set + "rank1.json", "more"}});
  const Fetch step = FetchOf({first, second});
  const auto outcome = RunFetch(step);
  ASSERT_TRUE(std::holds_alternative<Fetched>(outcome)) << FaultOf(outcome);
  EXPECT_EQ(GenerationFiles(root_.path(), step.generation),
            (Files{{set + "rank0.json", "equal"}, {set + "rank1.json", "more"}}));
}

TEST_F(FetchTest, RepeatedFetchGivesSameTree) {
  const Fetch step = FetchOf({Publish(files_)});
  ASSERT_TRUE(std::holds_alternative<Fetched>(RunFetch(step)));
  const Files once = GenerationFiles(root_.path(), step.generation);
  ASSERT_TRUE(fs::RemoveTree(root_.dir(), GenerationPath(step.generation)).ok());
  ASSERT_TRUE(std::holds_alternative<Fetched>(RunFetch(step)));
  EXPECT_EQ(GenerationFiles(root_.path(), step.generation), once);
}

TEST_F(FetchTest, ReplacesStagingTreeOfKilledFetch) {
  const Fetch step = FetchOf({Publish(files_)});
  root_.Write(StagingPath(step.generation) + "/inductor/half", "partial");
  ASSERT_TRUE(std::holds_alternative<Fetched>(RunFetch(step)));
  EXPECT_EQ(GenerationFiles(root_.path(), step.generation), files_);
}

TEST_F(FetchTest, ReportsProgress) {
  FetchJob job = JobOf(FetchOf({Publish(files_)}));
  int64_t most = 0;
  job.on_progress = [&](const Digest& digest, int64_t done) {
    EXPECT_EQ(digest, job.step.bundles[0].digest);
    EXPECT_GE(done, most);
    most = done;
  };
  ASSERT_TRUE(std::holds_alternative<Fetched>(FetchGeneration(job, {})));
  EXPECT_GT(most, 0);
}

TEST_F(FetchTest, ReportsMissingBundle) {
  const Digest there = Publish(files_);
  const Digest missing = DigestOf("never pushed");
  const Fetch step = FetchOf({there, missing});
  const auto outcome = RunFetch(step);
  EXPECT_EQ(FaultOf(outcome).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(KindOf(outcome), FaultKind::kMissing);
  EXPECT_EQ(std::get<FetchFault>(outcome).digest, missing);
  ExpectNoTrace(step);
}

TEST_F(FetchTest, RejectsEveryBitFlip) {
  constexpr unsigned kSeeds = 1000;
  const Digest digest = Publish(files_);
  const std::string repository = kMount.ns + "/" + kMount.name;
  const auto bundle = bundle::ReadBundle({store_, repository}, digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const auto read = [&](const bundle::Descriptor& blob) {
    bundle::TextSink text(static_cast<size_t>(blob.bytes));
    EXPECT_TRUE(store_.ReadBlob(repository, {blob.digest, 0, blob.bytes}, text, {}).ok());
    return text.text();
  };
  const std::vector<std::pair<Digest, std::string>> blobs = {
      {digest, *store_.ReadManifest(repository, digest, {})},
      {bundle->manifest.config.digest, read(bundle->manifest.config)},
      {bundle->manifest.layers.at(0).digest, read(bundle->manifest.layers.at(0))}};
  const Fetch step = FetchOf({digest});
  std::mt19937 random(1);
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    const auto& [name, bytes] = blobs[seed % blobs.size()];
    std::string damaged = bytes;
    char& victim = damaged[random() % damaged.size()];
    victim = static_cast<char>(victim ^ (1 << random() % 8));
    ASSERT_TRUE(store_.Corrupt(repository, name, damaged));
    const auto outcome = RunFetch(step);
    EXPECT_TRUE(absl::IsDataLoss(FaultOf(outcome))) << seed << FaultOf(outcome);
    EXPECT_EQ(KindOf(outcome), FaultKind::kDamaged);
    ExpectNoTrace(step);
    ASSERT_TRUE(store_.Corrupt(repository, name, bytes));
  }
  EXPECT_TRUE(std::holds_alternative<Fetched>(RunFetch(step)));
}

TEST_F(FetchTest, AcceptsOnlySignedBundles) {
  const Digest digest = Publish(files_);
  const bundle::RepositoryRef place{store_, kMount.ns + "/" + kMount.name};
  FetchJob job = JobOf(FetchOf({digest}));
  job.public_key_file = root_ / "key.pub";
  root_.Write("key.pub", bundle::kSignerPublic);
  const auto expect_refused = [&](std::string_view problem) {
    int blobs = 0;
    store_.SetFault([&blobs](std::string_view call) {
      blobs += call == "ReadBlob" ? 1 : 0;
      return absl::OkStatus();
    });
    const auto outcome = FetchGeneration(job, {});
    store_.SetFault(nullptr);
    const auto* fault = std::get_if<FetchFault>(&outcome);
    ASSERT_NE(fault, nullptr);
    EXPECT_EQ(KindOf(outcome), FaultKind::kUnsigned);
    EXPECT_EQ(fault->digest, digest);
    EXPECT_NE(Message(fault->status).find(problem), std::string::npos) << fault->status;
    EXPECT_LE(blobs, 1) << "of a signature, and none of the bundle";
    ExpectNoTrace(job.step);
  };
  expect_refused("has no signature");
  ASSERT_TRUE(*bundle::Sign(place, digest, *bundle::PrivateKey::Parse(bundle::kOtherSigner), {}));
  expect_refused("another key");
  ASSERT_TRUE(*bundle::Sign(place, digest, *bundle::PrivateKey::Parse(bundle::kSigner), {}));
  const auto outcome = FetchGeneration(job, {});
  EXPECT_TRUE(std::holds_alternative<Fetched>(outcome)) << FaultOf(outcome);
}

TEST_F(FetchTest, UnreadableKeyIsDiskFault) {
  FetchJob job = JobOf(FetchOf({Publish(files_)}));
  job.public_key_file = root_ / "none.pub";
  const auto outcome = FetchGeneration(job, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(FaultOf(outcome))) << FaultOf(outcome);
  EXPECT_TRUE(std::get<FetchFault>(outcome).digest.empty());
  EXPECT_EQ(KindOf(outcome), FaultKind::kDisk);
}

TEST_F(FetchTest, FailedReferrersIsStoreFault) {
  FetchJob job = JobOf(FetchOf({Publish(files_)}));
  job.public_key_file = root_ / "key.pub";
  root_.Write("key.pub", bundle::kSignerPublic);
  store_.SetFault([](std::string_view call) {
    return call == "Referrers" ? absl::UnavailableError("down") : absl::OkStatus();
  });
  const auto outcome = FetchGeneration(job, {});
  EXPECT_EQ(KindOf(outcome), FaultKind::kStore);
}

TEST_F(FetchTest, RejectsHostCodeOfOtherCpuClass) {
  const Digest digest = Publish(files_);
  FetchJob job = JobOf(FetchOf({digest}));
  job.cpu_class = "x86-64-v3/intel-6-85/0123abcd";
  EXPECT_EQ(KindOf(FetchGeneration(job, {})), FaultKind::kRejected);
  ExpectNoTrace(job.step);
}

TEST_F(FetchTest, AcceptsBundleWithoutHostCodeOnAnyCpuClassOfTheGpuType) {
  node_.gpu_type = "nvidia/h100-80gb-hbm3/sm_90";
  const Digest digest = Publish({{kIndexFile, "index"}});
  FetchJob job = JobOf(FetchOf({digest}));
  job.cpu_class = "x86-64-v3/intel-6-85/0123abcd";
  EXPECT_TRUE(std::holds_alternative<Fetched>(FetchGeneration(job, {})));
}

TEST_F(FetchTest, RejectsCppKernelsOfOtherCpuClassWithoutAnObject) {
  node_.gpu_type = "nvidia/h100-80gb-hbm3/sm_90";
  const Digest digest = Publish({{kIndexFile, "async_compile.cpp_pybinding(['float*'], r"}});
  FetchJob job = JobOf(FetchOf({digest}));
  job.cpu_class = "x86-64-v3/intel-6-85/0123abcd";
  EXPECT_EQ(KindOf(FetchGeneration(job, {})), FaultKind::kRejected);
}

TEST_F(FetchTest, RejectsAnyBundleOfACpuNodeOfOtherCpuClass) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  FetchJob job = JobOf(FetchOf({digest}));
  job.cpu_class = "x86-64-v3/intel-6-85/0123abcd";
  EXPECT_EQ(KindOf(FetchGeneration(job, {})), FaultKind::kRejected);
}

TEST_F(FetchTest, RejectsOtherGpuType) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  FetchJob job = JobOf(FetchOf({digest}));
  job.gpu_type = "nvidia/h100-80gb-hbm3/sm_90";
  EXPECT_EQ(KindOf(FetchGeneration(job, {})), FaultKind::kRejected);
}

TEST_F(FetchTest, RefusesFetchAboveByteLimit) {
  FetchJob job = JobOf(FetchOf({Publish(files_)}));
  job.disk = {.limit_bytes = 20'000, .used_bytes = 15'000};
  const auto outcome = FetchGeneration(job, {});
  const absl::Status status = FaultOf(outcome);
  EXPECT_EQ(KindOf(outcome), FaultKind::kOverLimit) << status;
  EXPECT_NE(std::string(status.message()).find("raise byteLimit"), std::string::npos);
  ExpectNoTrace(job.step);
}

TEST_F(FetchTest, CountsWhatParallelFetchesHaveReserved) {
  const Fetch step = FetchOf({Publish(files_)});
  FetchJob job = JobOf(step);
  job.disk = {.limit_bytes = 1'000'000, .used_bytes = 0};
  DiskAmount needed;
  DiskAmount others{.bytes = 1'000'000};
  job.reserve = [&](const DiskAmount& need, const auto& check) {
    needed = need;
    return check(others);
  };
  const auto refused = FetchGeneration(job, {});
  EXPECT_EQ(KindOf(refused), FaultKind::kOverLimit) << FaultOf(refused);
  EXPECT_EQ(std::get<FetchFault>(refused).lacking.bytes, needed.bytes);
  EXPECT_GT(needed.inodes, 3) << "files and directories";
  ExpectNoTrace(step);
  others = {};
  EXPECT_TRUE(std::holds_alternative<Fetched>(FetchGeneration(job, {})));
  EXPECT_EQ(ReadGenerationRecord(root_.dir(), step.generation)->usage, needed);
}

TEST_F(FetchTest, RefusesFetchThatLeavesTooFewInodesFree) {
  FetchJob job = JobOf(FetchOf({Publish(files_)}));
  job.disk = {.reserve = {.inodes = int64_t{1} << 60}};
  const auto outcome = FetchGeneration(job, {});
  EXPECT_EQ(KindOf(outcome), FaultKind::kDiskFull);
  EXPECT_NE(std::string(FaultOf(outcome).message()).find("inodes"), std::string::npos);
  ExpectNoTrace(job.step);
}

TEST_F(FetchTest, UnavailableStoreIsStoreFault) {
  const Fetch step = FetchOf({Publish(files_)});
  for (const std::string_view failing : {"ReadManifest", "ReadBlob"}) {
    store_.SetFault([&](std::string_view call) {
      return call == failing ? absl::UnavailableError("503") : absl::OkStatus();
    });
    const auto outcome = RunFetch(step);
    EXPECT_TRUE(absl::IsUnavailable(FaultOf(outcome))) << failing << FaultOf(outcome);
    EXPECT_EQ(KindOf(outcome), FaultKind::kStore);
    ExpectNoTrace(step);
  }
  store_.SetFault(nullptr);
  EXPECT_TRUE(std::holds_alternative<Fetched>(RunFetch(step)));
}

TEST_F(FetchTest, FullDiskLeavesNoFiles) {
  Files large = files_;
  large[kOutputFile] = std::string(300'000, 'x');
  const Fetch step = FetchOf({Publish(large)});
  struct ::rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct ::rlimit small { .rlim_cur = 100'000, .rlim_max = before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto outcome = RunFetch(step);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(KindOf(outcome), FaultKind::kDiskFull) << FaultOf(outcome);
  ExpectNoTrace(step);
  EXPECT_TRUE(std::holds_alternative<Fetched>(RunFetch(step)));
}

TEST_F(FetchTest, StoreRateLimitIsStoreFault) {
  const Fetch step = FetchOf({Publish(files_)});
  store_.SetFault([](std::string_view call) {
    return call == "ReadBlob" ? absl::ResourceExhaustedError("429") : absl::OkStatus();
  });
  EXPECT_EQ(KindOf(RunFetch(step)), FaultKind::kStore);
}

TEST_F(FetchTest, DiskErrorIsDiskFault) {
  const Fetch step = FetchOf({Publish(files_)});
  // A staging tree cannot be made below a file.
  std::filesystem::remove_all(root_ / ".staging");
  root_.Write(".staging", "a file");
  EXPECT_EQ(KindOf(RunFetch(step)), FaultKind::kDisk) << FaultOf(RunFetch(step));
}

TEST_F(FetchTest, StopsOnRequest) {
  std::stop_source stop;
  stop.request_stop();
  FetchJob job = JobOf(FetchOf({Publish(files_)}));
  EXPECT_TRUE(absl::IsCancelled(FaultOf(FetchGeneration(job, stop.get_token()))));
  ExpectNoTrace(job.step);
}

}  // namespace
}  // namespace cachewarm::agent

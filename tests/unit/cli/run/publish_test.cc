// SPDX-License-Identifier: Apache-2.0
// Fetching and publishing through a real image layout.
#include "cli/run/publish.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "cli/run/directory.h"
#include "cli/run/fetch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/bundle/store/forwarding_store.h"
#include "lib/capture/stable_file.h"
#include "lib/fs/file.h"
#include "lib/fs/lock.h"
#include "tests/fakes/await.h"
#include "tests/fakes/cache_files.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/noise.h"
#include "tests/unit/cli/run/machines.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kAmd[] = "x86-64-v4/amd-25-17/5c0d9f21";
constexpr char kIntel[] = "x86-64-v3/intel-6-85/0123abcd";
constexpr char kA[] = "inductor/ab/cabca.py";
constexpr char kB[] = "inductor/ab/cabcb.py";
constexpr char kC[] = "inductor/ab/cabcc.py";

// Calls `after` after each move of a tag.
class TagObserver : public bundle::ForwardingStore {
 public:
  TagObserver(bundle::Store& inner, std::function<void()> after)
      : ForwardingStore(inner), after_(std::move(after)) {}
  absl::StatusOr<Digest> WriteManifest(const std::string& repository, const std::string& bytes,
                                       const std::string& tag, std::stop_token stop) override {
    auto written = inner().WriteManifest(repository, bytes, tag, stop);
    if (!tag.empty()) {
      after_();
    }
    return written;
  }

 private:
  std::function<void()> after_;
};

class PublishTest : public ::testing::Test {
 protected:
  BundleSource Source(Machine machine) { return SourceIn(temp_ / "store", std::move(machine)); }
  // The same store, used like a registry, which has no locks.
  BundleSource WithoutLease() const {
    BundleSource source = source_;
    source.store.reference.store_url = "oci://registry.test";
    return source;
  }
  void Write(const std::string& replica, const std::string& path, const std::string& text = "1\n") {
    temp_.Write(replica + "/" + path, text);
  }
  fs::Dir Replica(const std::string& name) { return *fs::Dir::OpenOrMake(temp_ / name, 0755); }
  absl::StatusOr<PublishReport> Publish(const std::string& replica, const BundleSource& source,
                                        std::set<std::string> replaced = {}) {
    const fs::Dir dir = Replica(replica);
    return PublishUnion(
        {.source = source, .dir = dir, .clock = SystemClock(), .replaced = std::move(replaced)},
        {});
  }
  PublishOutcome Outcome(const std::string& replica, const BundleSource& source,
                         std::set<std::string> replaced = {}) {
    const auto report = Publish(replica, source, std::move(replaced));
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? report->outcome : PublishOutcome::kEmpty;
  }
  FetchReport Fetch(const std::string& replica, const BundleSource& source,
                    FetchLimits limits = {}) {
    const fs::Dir dir = Replica(replica);
    return FetchMissing({.source = source, .dir = dir, .clock = SystemClock(), .limits = limits},
                        {});
  }
  std::vector<std::string> StoredPaths(const BundleSource& source) {
    const auto found = ReadUsableBundle(source, {});
    EXPECT_TRUE(found.ok()) << found.status();
    std::vector<std::string> paths;
    for (const bundle::Entry& entry : found->config.entries) {
      paths.push_back(entry.path);
    }
    return paths;
  }
  std::string Read(const std::string& path) {
    return fs::ReadFile(temp_.Open(), path, 1 << 20).value_or("(missing)");
  }

  TempDir temp_;
  const BundleSource source_ = Source(MachineOf(kAmd));
};

TEST_F(PublishTest, SecondReplicaFindsThatTheBundleHasItsFiles) {
  Write("one", kA);
  EXPECT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  Write("two", kA, "the same entry, compiled again\n");
  EXPECT_EQ(Outcome("two", source_), PublishOutcome::kCovered);
  EXPECT_EQ(Outcome("empty", source_), PublishOutcome::kEmpty);
}

TEST_F(PublishTest, BundleIsTheUnionOfReplicasWithDifferentFiles) {
  Write("one", kA);
  Write("two", kB);
  Write("three", kC);
  for (const char* replica : {"one", "two", "three"}) {
    EXPECT_EQ(Outcome(replica, source_), PublishOutcome::kPublished);
  }
  EXPECT_THAT(StoredPaths(source_), ElementsAre(kA, kB, kC));
  EXPECT_EQ(Fetch("four", source_).files, 3);
}

TEST_F(PublishTest, FileThatTheEngineReplacedIsPublished) {
  Write("one", kA, "old\n");
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  Write("one", kA, "new\n");
  EXPECT_EQ(Outcome("one", source_, {kA}), PublishOutcome::kPublished);
  ASSERT_TRUE(Fetch("two", source_).status.ok());
  EXPECT_EQ(Read(std::string("two/") + kA), "new\n");
}

TEST_F(PublishTest, LostRaceIsRepeatedUntilTheTagHasEveryFile) {
  Write("one", kA);
  Write("two", kB);
  // Another writer moves the tag right after this one, to a bundle without its files.
  BundleSource raced = WithoutLease();
  int moves = 0;
  raced.store.store = std::make_shared<TagObserver>(*source_.store.store, [&] {
    if (++moves == 1) {
      std::filesystem::remove_all(temp_ / "store");
      EXPECT_EQ(Outcome("two", source_), PublishOutcome::kPublished);
    }
  });
  EXPECT_EQ(Outcome("one", raced), PublishOutcome::kPublished);
  EXPECT_EQ(moves, 2);
  EXPECT_THAT(StoredPaths(source_), ElementsAre(kA, kB));
}

TEST_F(PublishTest, EndlessRaceEndsWithAnError) {
  Write("one", kA);
  BundleSource raced = WithoutLease();
  raced.store.store = std::make_shared<TagObserver>(
      *source_.store.store, [&] { std::filesystem::remove_all(temp_ / "store"); });
  const auto report = Publish("one", raced);
  EXPECT_TRUE(absl::IsAborted(report.status())) << report.status();
}

TEST_F(PublishTest, TwentyReplicasAtOnceLeaveOneCompleteBundle) {
  constexpr int kReplicas = 20;
  std::vector<std::string> expected;
  for (int i = 0; i < kReplicas; ++i) {
    Write("r" + std::to_string(i), kA);
    expected.push_back("inductor/cd/c" + std::to_string(100 + i) + ".py");
    Write("r" + std::to_string(i), expected.back());
  }
  std::vector<absl::Status> results(kReplicas);
  {
    std::vector<std::jthread> replicas;
    for (int i = 0; i < kReplicas; ++i) {
      replicas.emplace_back([&, i] {
        results[static_cast<size_t>(i)] = Publish("r" + std::to_string(i), source_).status();
      });
    }
  }
  for (const absl::Status& result : results) {
    EXPECT_TRUE(result.ok()) << result;
  }
  expected.insert(expected.begin(), kA);
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(StoredPaths(source_), expected);
  EXPECT_EQ(Fetch("next", source_).files, kReplicas + 1);
}

TEST_F(PublishTest, PublisherThatNeverEndsDelaysOthersByAMinute) {
  Write("one", kA);
  const fs::Dir repository = *fs::Dir::OpenOrMake(temp_ / "store/llama", 0755);
  fakes::FakeClock clock;
  absl::StatusOr<PublishReport> report = absl::UnknownError("");
  {
    const auto held = fs::Lock(repository, ".publish.lock", {.clock = SystemClock()});
    ASSERT_TRUE(held.ok()) << held.status();
    const fs::Dir dir = Replica("one");
    std::atomic<bool> has_ended = false;
    std::jthread publisher([&] {
      report = PublishUnion({.source = source_, .dir = dir, .clock = clock}, {});
      has_ended = true;
    });
    ASSERT_TRUE(clock.AwaitWaiters(1));
    EXPECT_FALSE(has_ended) << "it waits for the holder of the lease";
    ASSERT_TRUE(fakes::Await([&] {
      clock.Advance(std::chrono::seconds(1));
      return has_ended.load();
    }));
  }
  EXPECT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(StoredPaths(source_), ElementsAre(kA));
}

TEST_F(PublishTest, OtherEngineVersionHasItsOwnBundle) {
  const BundleSource newer = Source(MachineOf(kAmd, {{"torch", "2.15.0"}}));
  const BundleSource older = Source(MachineOf(kAmd, {{"torch", "2.13.0"}}));
  Write("one", kA);
  Write("two", kB);
  EXPECT_EQ(Outcome("one", newer), PublishOutcome::kPublished);
  EXPECT_TRUE(absl::IsNotFound(Fetch("fresh", older).status));
  EXPECT_EQ(Outcome("two", older), PublishOutcome::kPublished);
  EXPECT_THAT(StoredPaths(newer), ElementsAre(kA));
  EXPECT_THAT(StoredPaths(older), ElementsAre(kB));
  EXPECT_EQ(ReadUsableBundle(older, {})->config.facts.engines.at("torch"), "2.13.0");
}

TEST_F(PublishTest, BundleOfAnotherCpuClassUnderTheTagIsNeitherFetchedNorMerged) {
  // Its facts name another CPU class than its tag.
  const Machine intel = MachineOf(kIntel);
  Machine poisoned = MachineOf(kAmd);
  poisoned.key = intel.key;
  temp_.Write("one/" + kObjectFile, SharedObject("avx512"));
  ASSERT_EQ(Outcome("one", Source(poisoned)), PublishOutcome::kPublished);
  const FetchReport fetched = Fetch("two", Source(intel));
  EXPECT_TRUE(absl::IsInvalidArgument(fetched.status)) << fetched.status;
  EXPECT_TRUE(TakeSnapshot(Replica("two")).empty());
  Write("two", kB);
  EXPECT_EQ(Outcome("two", Source(intel)), PublishOutcome::kPublished);
  EXPECT_THAT(StoredPaths(Source(intel)), ElementsAre(kB));
}

TEST_F(PublishTest, FilledDirectoryGetsTheFilesThatItLacks) {
  Write("one", kA, "a\n");
  Write("one", kB, "b\n");
  Write("one", "triton/KEY/kernel.json", "{}");
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  Write("old", kA, "its own\n");
  const FetchReport fetched = Fetch("old", source_);
  EXPECT_TRUE(fetched.status.ok()) << fetched.status;
  EXPECT_EQ(fetched.files, 2);
  EXPECT_EQ(Read(std::string("old/") + kA), "its own\n");
  EXPECT_EQ(Read(std::string("old/") + kB), "b\n");
  EXPECT_EQ(Read("old/triton/KEY/kernel.json"), "{}");
  EXPECT_EQ(Fetch("old", source_).files, 0);
  EXPECT_FALSE(std::filesystem::exists(temp_ / "old/.cachewarm/fetch"));
}

constexpr char kRank0[] = "sglang/flashinfer/autotune/0.7.0/90a/rank0.json";
constexpr char kRank1[] = "sglang/flashinfer/autotune/0.7.0/90a/rank1.json";

TEST_F(PublishTest, DirectoryKeepsItsOwnAutotuneResultsAndGetsNoOthers) {
  Write("one", kA);
  Write("one", kRank0, "one\n");
  Write("one", kRank1, "one\n");
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  Write("two", kRank0, "two\n");
  const FetchReport fetched = Fetch("two", source_);
  EXPECT_TRUE(fetched.status.ok()) << fetched.status;
  EXPECT_EQ(fetched.files, 1);
  EXPECT_EQ(fetched.rivals, 2);
  EXPECT_EQ(Read(std::string("two/") + kRank0), "two\n");
  EXPECT_EQ(Read(std::string("two/") + kRank1), "(missing)");
  EXPECT_EQ(Fetch("two", source_).files, 0);
}

TEST_F(PublishTest, FetchOfAutotuneResultsThatWasKilledIsCompleted) {
  Write("one", kRank0, "one\n");
  Write("one", kRank1, "one\n");
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  Write("two", kRank0, "one\n");
  EXPECT_EQ(Fetch("two", source_).files, 1);
  EXPECT_EQ(Read(std::string("two/") + kRank1), "one\n");
}

TEST_F(PublishTest, AutotuneResultsOfTwoReplicasAreNotUnited) {
  Write("one", kA);
  Write("one", kRank0, "one\n");
  Write("one", kRank1, "one\n");
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  Write("two", kB);
  Write("two", kRank0, "two\n");
  EXPECT_EQ(Outcome("two", source_), PublishOutcome::kPublished);
  EXPECT_EQ(Outcome("two", source_), PublishOutcome::kCovered);
  EXPECT_THAT(StoredPaths(source_), ElementsAre(kA, kB, kRank0, kRank1));
  ASSERT_TRUE(Fetch("three", source_).status.ok());
  EXPECT_EQ(Read(std::string("three/") + kRank0), "one\n");
  EXPECT_EQ(Read(std::string("three/") + kRank1), "one\n");
}

TEST_F(PublishTest, AutotuneResultsWithEveryPathReplaceThoseOfTheStore) {
  Write("one", kRank0, "one\n");
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  Write("two", kRank0, "two\n");
  Write("two", kRank1, "two\n");
  EXPECT_EQ(Outcome("two", source_), PublishOutcome::kPublished);
  EXPECT_EQ(Outcome("one", source_), PublishOutcome::kCovered);
  ASSERT_TRUE(Fetch("three", source_).status.ok());
  EXPECT_EQ(Read(std::string("three/") + kRank0), "two\n");
  EXPECT_EQ(Read(std::string("three/") + kRank1), "two\n");
}

TEST_F(PublishTest, ManyPublicationsBesideOtherAutotuneResultsArePackedWhole) {
  Write("one", kRank0, "one\n");
  Write("one", kRank1, "one\n");
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  Write("two", kRank0, "two\n");
  for (int i = 0; i < 40; ++i) {
    Write("two", "inductor/cd/c" + std::to_string(100 + i) + ".py");
    ASSERT_EQ(Outcome("two", source_), PublishOutcome::kPublished) << i;
  }
  EXPECT_LE(ReadUsableBundle(source_, {})->manifest.layers.size(), 32U);
  ASSERT_TRUE(Fetch("three", source_).status.ok());
  EXPECT_EQ(Read(std::string("three/") + kRank0), "two\n");
  EXPECT_EQ(Read(std::string("three/") + kRank1), "(missing)");
}

TEST_F(PublishTest, AbsolutePathsAreThoseOfTheDirectoryThatGetsTheFiles) {
  const auto group = [this](const std::string& replica) {
    return "{\"child_paths\": {\"k.json\": \"" + (temp_ / (replica + "/triton/KEY/k.json")) +
           "\"}}";
  };
  constexpr char kGroup[] = "/triton/KEY/__grp__k.json";
  Write("one", "triton/KEY/k.json", "{}");
  Write("one", "triton/KEY/__grp__k.json", group("one"));
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  EXPECT_EQ(Fetch("elsewhere/two", source_).files, 2);
  EXPECT_EQ(Read(std::string("elsewhere/two") + kGroup), group("elsewhere/two"));
  EXPECT_EQ(Outcome("elsewhere/two", source_), PublishOutcome::kCovered);
  EXPECT_EQ(Fetch("three", source_).files, 2);
  EXPECT_EQ(Read(std::string("three") + kGroup), group("three"));
  std::filesystem::remove_all(temp_ / "one");
  EXPECT_EQ(Fetch("one", source_).files, 2);
  EXPECT_EQ(Read(std::string("one") + kGroup), group("one"));
}

TEST_F(PublishTest, LocksInABundleAreNotRestored) {
  constexpr char kLock[] = "torch_extensions/ops/lock";
  Write("one", kA, "a\n");
  Write("one", kLock, "");
  const fs::Dir dir = Replica("one");
  const auto file = [&dir](const std::string& path, int64_t bytes) {
    return bundle::PackFile{
        .path = path, .kind = "torch-extensions", .bytes = bytes, .open = [&dir, path] {
          return capture::OpenStable({.tree = dir,
                                      .path = path,
                                      .expected = *dir.Stat(path),
                                      .on_opening = {},
                                      .detect_writers = false});
        }};
  };
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  const auto facts = ReadUsableBundle(source_, {})->config.facts;
  const auto made = bundle::Publish(source_.store.place(), {file(kA, 2), file(kLock, 0)}, facts,
                                    {.tag = source_.tag()}, {});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_THAT(StoredPaths(source_), ElementsAre(kA, kLock));
  EXPECT_EQ(Fetch("two", source_).files, 1);
  EXPECT_EQ(Read(std::string("two/") + kLock), "(missing)");
  EXPECT_EQ(Fetch("two", source_).files, 0);
}

TEST_F(PublishTest, RemainsOfAKilledFetchAreRemovedAndNotUsed) {
  Write("one", kA, "a\n");
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  Write("two", ".cachewarm/fetch/inductor/ab/cabca.py", "partial");
  EXPECT_EQ(Fetch("two", source_).files, 1);
  EXPECT_EQ(Read(std::string("two/") + kA), "a\n");
  EXPECT_FALSE(std::filesystem::exists(temp_ / "two/.cachewarm/fetch"));
}

TEST_F(PublishTest, TruncatedArchiveIsNotUsedAndIsReplaced) {
  Write("one", kA, fakes::Noise(100'000, 1));
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  const auto found = ReadUsableBundle(source_, {});
  const std::string layer =
      temp_ / "store/llama/blobs/sha256/" + found->manifest.layers.at(0).digest.hex();
  std::filesystem::permissions(layer, std::filesystem::perms::owner_all);
  std::filesystem::resize_file(layer, 50'000);
  const FetchReport fetched = Fetch("two", source_);
  EXPECT_TRUE(absl::IsDataLoss(fetched.status)) << fetched.status;
  EXPECT_TRUE(TakeSnapshot(Replica("two")).empty());
  Write("two", kA, fakes::Noise(100'000, 1));
  const fs::Dir dir = Replica("two");
  const auto published = PublishUnion(
      {.source = source_, .dir = dir, .clock = SystemClock(), .damaged = fetched.bundle}, {});
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_EQ(Fetch("three", source_).files, 1);
  EXPECT_EQ(Read(std::string("three/") + kA), fakes::Noise(100'000, 1));
}

TEST_F(PublishTest, SizeLimitLeavesTheTagUnchanged) {
  Write("one", kA, fakes::Noise(100'000, 1));
  const fs::Dir dir = Replica("one");
  PublishJob job{.source = source_, .dir = dir, .clock = SystemClock(), .packed_bytes_max = 50'000};
  EXPECT_TRUE(absl::IsOutOfRange(PublishUnion(job, {}).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadUsableBundle(source_, {}).status()));
  job.packed_bytes_max = 200'000;
  EXPECT_TRUE(PublishUnion(job, {}).ok());
  EXPECT_TRUE(absl::IsOutOfRange(Fetch("two", source_, {.packed_bytes_max = 50'000}).status));
  EXPECT_TRUE(Fetch("two", source_, {.packed_bytes_max = 200'000}).status.ok());
}

TEST_F(PublishTest, CachesThatAreNotSelectedStayInTheStore) {
  constexpr char kKernel[] = "triton/KEY/__grp__k.json";
  Write("one", kA);
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  Write("two", kB);
  Write("two", kKernel);
  const auto table = caches::CacheTable::Make({{.name = "triton"}});
  ASSERT_TRUE(table.ok()) << table.status();
  const fs::Dir dir = Replica("two");
  const auto published =
      PublishUnion({.source = source_, .dir = dir, .clock = SystemClock(), .table = *table}, {});
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_THAT(StoredPaths(source_), ElementsAre(kA, kKernel));
}

TEST_F(PublishTest, FetchKeepsTheFreeSpaceFloor) {
  Write("one", kA);
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  const FetchReport fetched = Fetch("two", source_, {.free_bytes_min = INT64_MAX / 2});
  EXPECT_TRUE(absl::IsResourceExhausted(fetched.status)) << fetched.status;
  EXPECT_THAT(std::string(fetched.status.message()), HasSubstr("delete files on this disk"));
  EXPECT_TRUE(TakeSnapshot(Replica("two")).empty());
}

TEST_F(PublishTest, BundleWithManyLayersIsPackedWholeAndLosesNothing) {
  std::vector<std::string> expected;
  for (int i = 0; i < 40; ++i) {
    expected.push_back("inductor/cd/c" + std::to_string(100 + i) + ".py");
    const std::string replica = "r" + std::to_string(i);
    Write(replica, expected.back());
    ASSERT_EQ(Outcome(replica, source_), PublishOutcome::kPublished) << i;
  }
  EXPECT_EQ(StoredPaths(source_), expected);
  EXPECT_LE(ReadUsableBundle(source_, {})->manifest.layers.size(), 32U);
}

TEST_F(PublishTest, SignerMergesOnlyWhatItTrusts) {
  temp_.Write("key.pem", bundle::kSigner);
  temp_.Write("key.pub", bundle::kSignerPublic);
  Write("one", kA);
  ASSERT_EQ(Outcome("one", source_), PublishOutcome::kPublished);
  BundleSource signing = source_;
  signing.keys.private_key_file = temp_ / "key.pem";
  Write("two", kB);
  EXPECT_EQ(Outcome("two", signing), PublishOutcome::kPublished);
  EXPECT_THAT(StoredPaths(source_), ElementsAre(kB)) << "the unsigned bundle was not merged";
  BundleSource checking = signing;
  checking.keys.public_key_file = temp_ / "key.pub";
  EXPECT_EQ(Fetch("three", checking).files, 1);
  Write("three", kC);
  EXPECT_EQ(Outcome("three", checking), PublishOutcome::kPublished);
  EXPECT_THAT(StoredPaths(checking), ElementsAre(kB, kC));
}

}  // namespace
}  // namespace cachewarm::cli

// SPDX-License-Identifier: Apache-2.0
// A collection of an image layout that is killed, or whose disk fails, at any call, on a file
// system that behaves like NFS, and beside publishers. In all cases the tag leads to a complete
// bundle, publishers succeed, and the next collection removes what is left.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/gc/collect.h"
#include "tests/fakes/tree_usage.h"
#include "tests/integration/agent/kill_at_call.h"
#include "tests/integration/store/stored_bundles.h"

namespace cachewarm::bundle {
namespace {

using agent::CallEntry;
using agent::FailCalls;
using agent::KillAtPoint;

constexpr Duration kMinAge = std::chrono::hours(1);

// Makes a blob as old as one that was written long ago.
void MakeOld(const std::string& directory, const Digest& digest) {
  const std::string path =
      fmt::format("{}/{}/blobs/sha256/{}", directory, kRepository, digest.hex());
  const timespec times[] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
  ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

// Deletes every manifest without a tag and sweeps.
bool CollectUntagged(const std::string& directory) {
  LayoutStore store(directory, SystemClock());
  const auto list = store.ListManifests(kRepository, {});
  bool good = list.ok();
  for (const StoredManifest& manifest :
       list.ok() ? list->manifests : std::vector<StoredManifest>()) {
    if (manifest.tags.empty()) {
      const absl::Status deleted = store.DeleteManifest(kRepository, manifest, {});
      good = good && (deleted.ok() || absl::IsFailedPrecondition(deleted));
    }
  }
  return store.SweepBlobs(kRepository, {.min_age = kMinAge}, {}).ok() && good;
}

// A store with a tagged bundle and one that it replaced; all blobs are old.
class GcScene {
 public:
  GcScene(const PackedSample& before, const PackedSample& after) : before_(before), after_(after) {
    LayoutStore store(directory(), SystemClock());
    EXPECT_TRUE(WriteSample(store, before).ok());
    EXPECT_TRUE(WriteSample(store, after).ok());
    MakeAllOld();
  }
  std::string directory() const { return temp_ / "store"; }
  void MakeAllOld() const {
    for (const PackedSample* sample : {&before_, &after_}) {
      MakeOld(directory(), sample->packed.digest);
      MakeOld(directory(), sample->packed.manifest.config.digest);
      MakeOld(directory(), sample->packed.manifest.layers[0].digest);
    }
  }
  std::function<bool()> Collect() const {
    return [this] { return CollectUntagged(directory()); };
  }
  int64_t Blobs() const {
    return fakes::CountFiles(*fs::Dir::Open(directory()), fmt::format("{}/blobs", kRepository));
  }
  void ExpectCollected(const std::string& when) const {
    EXPECT_EQ(Blobs(), 3) << when << "manifest, config and layer of the tagged bundle";
    ExpectWholeBundle(directory(), when);
    ExpectNoExtraFiles(directory(), when);
    EXPECT_FALSE(fs::Dir::Open(directory() + "/" + kRepository)->Exists(".removed").value_or(true));
  }

 private:
  const TempDir temp_;
  const PackedSample& before_;
  const PackedSample& after_;
};

class SweepFailure : public ::testing::Test {
 protected:
  const PackedSample old_ = PackTree({{"a", {.content = "old"}}});
  const PackedSample new_ = PackTree(SampleTree());
};

TEST_F(SweepFailure, KilledCollectionLeavesAWholeLayout) {
  const int points = [&] {
    const GcScene scene(old_, new_);
    const auto whole = KillAtPoint(scene.Collect());
    EXPECT_TRUE(whole.succeeded);
    scene.ExpectCollected("without a kill");
    return whole.points;
  }();
  ASSERT_GT(points, 20) << "ptrace saw too few calls";
  for (int point = 0; point < points; ++point) {
    const std::string when = fmt::format("killed at {}: ", point);
    const GcScene scene(old_, new_);
    ASSERT_TRUE(KillAtPoint(scene.Collect(), point).was_killed) << when;
    ExpectWholeBundle(scene.directory(), when);
    // A publisher of the bundle that was about to be deleted succeeds.
    LayoutStore store(scene.directory(), SystemClock());
    const absl::Status written = WriteSample(store, old_);
    EXPECT_TRUE(written.ok()) << when << written;
    ExpectWholeBundle(scene.directory(), when);
    EXPECT_TRUE(WriteSample(store, new_).ok()) << when;
    // Restored blobs are young, so that the first collection may leave some.
    EXPECT_TRUE(CollectUntagged(scene.directory())) << when;
    scene.MakeAllOld();
    EXPECT_TRUE(CollectUntagged(scene.directory())) << when;
    scene.ExpectCollected(when);
    ASSERT_FALSE(HasFailure()) << when;
  }
}

TEST_F(SweepFailure, FailingDiskLeavesAWholeLayout) {
  for (const bool stays : {false, true}) {
    for (int point = 0;; ++point) {
      const std::string when =
          fmt::format("broken {} at {}: ", stays ? "from then on" : "once", point);
      const GcScene scene(old_, new_);
      int seen = 0;
      FailCalls(scene.Collect(), [&](const CallEntry& call) {
        if (!call.ChangesFiles()) {
          return 0;
        }
        const int at = seen++;
        return at == point || (stays && at > point) ? EIO : 0;
      });
      if (seen <= point) {
        break;
      }
      ExpectWholeBundle(scene.directory(), when);
      EXPECT_TRUE(CollectUntagged(scene.directory())) << when;
      scene.MakeAllOld();
      EXPECT_TRUE(CollectUntagged(scene.directory())) << when;
      scene.ExpectCollected(when);
      ASSERT_FALSE(HasFailure()) << when;
    }
  }
}

TEST_F(SweepFailure, BlobThatAWriterFindsBeforeItsRemovalStays) {
  const GcScene scene(old_, new_);
  LayoutStore store(scene.directory(), SystemClock());
  const Digest& config = old_.packed.manifest.config.digest;
  const Digest& layer = old_.packed.manifest.layers[0].digest;
  const std::string removed = fmt::format("{}/.removed", kRepository);
  int found = 0;
  const auto run = FailCalls(scene.Collect(), [&](const CallEntry& call) {
    // The sweep has chosen the blobs, and is about to move one of them to .removed/.
    const bool is_rename = call.number == SYS_renameat || call.number == SYS_renameat2;
    const bool is_removal =
        is_rename && fs::Dir::Open(scene.directory())->Exists(removed).value_or(false);
    if (is_removal && found == 0) {
      found += store.HasBlob(kRepository, config, {}).value_or(false) ? 1 : 0;
      found += store.HasBlob(kRepository, layer, {}).value_or(false) ? 1 : 0;
    }
    return 0;
  });
  EXPECT_TRUE(run.succeeded);
  ASSERT_EQ(found, 2);
  const auto written = store.WriteManifest(kRepository, old_.packed.manifest_text, kTag, {});
  EXPECT_TRUE(written.ok()) << written.status();
  ExpectWholeBundle(scene.directory(), "after the sweep");
}

// The file or directory that a traced call reads; empty for other calls.
std::string ReadPath(const CallEntry& call) {
  if (call.number != SYS_getdents64 && call.number != SYS_read && call.number != SYS_pread64) {
    return "";
  }
  std::error_code ignored;
  return std::filesystem::read_symlink(
             fmt::format("/proc/{}/fd/{}", call.process, call.arguments[0]), ignored)
      .string();
}

TEST_F(SweepFailure, BlobsAreWalkedAndManifestsAreReadOnce) {
  constexpr int kMore = 300;  // three batches
  const GcScene scene(old_, new_);
  LayoutStore store(scene.directory(), SystemClock());
  for (int i = 0; i < kMore; ++i) {
    const auto blob = WriteSmallBlob(store, kRepository, fmt::format("blob {}", i), {});
    ASSERT_TRUE(blob.ok()) << blob.status();
    MakeOld(scene.directory(), blob->digest);
  }
  int walks = 0;
  int manifests = 0;
  const auto run = FailCalls(scene.Collect(), [&](const CallEntry& call) {
    const std::string path = ReadPath(call);
    walks += path.ends_with("/blobs/sha256") ? 1 : 0;
    manifests += path.ends_with(new_.packed.digest.hex()) ? 1 : 0;
    return 0;
  });
  EXPECT_TRUE(run.succeeded);
  scene.ExpectCollected("after three batches");
  EXPECT_GT(walks, 0);
  EXPECT_LE(walks, 3) << "the names fill one or two buffers";
  EXPECT_GT(manifests, 0);
  EXPECT_LE(manifests, 2) << "the bytes, and perhaps the end of the file";
}

TEST_F(SweepFailure, CollectsOnAFileSystemWithoutRenameFlags) {
  const GcScene scene(old_, new_);
  ASSERT_TRUE(KillAtPoint(scene.Collect(), 20).was_killed);
  scene.MakeAllOld();
  int refused = 0;
  const auto run = FailCalls(
      [&] {
        const bool first = CollectUntagged(scene.directory());
        scene.MakeAllOld();
        return CollectUntagged(scene.directory()) && first;
      },
      [&](const CallEntry& call) {
        const bool unsupported =
            call.number == SYS_linkat || (call.number == SYS_renameat2 && call.arguments[4] != 0);
        refused += unsupported ? 1 : 0;
        return unsupported ? EINVAL : 0;
      });
  EXPECT_TRUE(run.succeeded);
  EXPECT_EQ(refused, 0);
  scene.ExpectCollected("on NFS");
}

// Publishes bundles under a tag of its own, whose blobs are old each time it begins: the moment
// at which a sweep and a publisher meet.
bool PublishOldBundles(const std::string& directory, int publisher) {
  LayoutStore store(directory, SystemClock());
  const std::string tag = fmt::format("k-publisher-{}", publisher);
  std::vector<PackedSample> samples;
  for (int i = 0; i < 2; ++i) {
    samples.push_back(PackTree({{"a", {.content = fmt::format("{} {}", publisher, i)}}}, 4096, 1));
  }
  for (int round = 0; round < 60; ++round) {
    const PackedSample& sample = samples[static_cast<size_t>(round % 2)];
    MakeOld(directory, sample.packed.manifest.config.digest);
    MakeOld(directory, sample.packed.manifest.layers[0].digest);
    const auto there = store.HasBlob(kRepository, sample.packed.manifest.layers[0].digest, {});
    if (!there.ok() || (!*there && !WriteInPieces(store, sample.layer).ok()) ||
        !WriteSmallBlob(store, kRepository, sample.packed.config_text, {}).ok()) {
      return false;
    }
    ::usleep(static_cast<useconds_t>(1'000 * (round % 20)));  // the publisher packs further files
    const auto written = store.WriteManifest(kRepository, sample.packed.manifest_text, tag, {});
    const auto read = store.ResolveTag(kRepository, tag, {});
    if (!written.ok() || !read.ok() || *read != sample.packed.digest ||
        !store.ReadManifest(kRepository, *read, {}).ok()) {
      return false;
    }
  }
  return true;
}

// Collects in a new process until it is killed or fails.
pid_t StartCollector(const std::string& directory) {
  const pid_t child = ::fork();
  if (child == 0) {
    while (CollectUntagged(directory)) {
    }
    ::_exit(1);
  }
  return child;
}

void ExpectKilled(pid_t collector) {
  ::kill(collector, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(collector, &status, 0), collector);
  EXPECT_TRUE(WIFSIGNALED(status)) << "a collection failed";
}

TEST_F(SweepFailure, PublishersBesideCollectorsLoseNothing) {
  constexpr int kPublishers = 3;
  const GcScene scene(old_, new_);
  std::vector<pid_t> publishers;
  for (int publisher = 0; publisher < kPublishers; ++publisher) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::_exit(PublishOldBundles(scene.directory(), publisher) ? 0 : 1);
    }
    publishers.push_back(child);
  }
  // One collector runs all the time; others are killed at some moment.
  const pid_t steady = StartCollector(scene.directory());
  int status = 0;
  for (int round = 0; !publishers.empty(); ++round) {
    const pid_t killed = StartCollector(scene.directory());
    ::usleep(static_cast<useconds_t>(1'000 * (5 + round % 200)));
    ExpectKilled(killed);
    ExpectWholeBundle(scene.directory(), fmt::format("round {}", round));
    std::erase_if(publishers, [&](pid_t publisher) {
      const bool ended = ::waitpid(publisher, &status, WNOHANG) == publisher;
      EXPECT_TRUE(!ended || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
          << "a publication failed";
      return ended;
    });
  }
  ExpectKilled(steady);
  EXPECT_TRUE(CollectUntagged(scene.directory()));
  LayoutStore store(scene.directory(), SystemClock());
  for (int publisher = 0; publisher < kPublishers; ++publisher) {
    const RepositoryRef place{store, kRepository};
    const auto digest = store.ResolveTag(kRepository, fmt::format("k-publisher-{}", publisher), {});
    ASSERT_TRUE(digest.ok()) << digest.status();
    EXPECT_TRUE(Verify(place, *ReadBundle(place, *digest, {}), {}, {}).ok());
  }
  ExpectNoExtraFiles(scene.directory(), "after all");
}

}  // namespace
}  // namespace cachewarm::bundle

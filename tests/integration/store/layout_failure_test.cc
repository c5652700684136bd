// SPDX-License-Identifier: Apache-2.0
// An image layout whose writer is killed or whose disk fails or is full at any call, and a layout
// on a file system that behaves like NFS. In all cases every blob matches its name, the tag leads
// to a complete bundle, and the next writer succeeds and cleans up.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/store/retry/retry_store.h"
#include "tests/integration/agent/kill_at_call.h"
#include "tests/integration/store/stored_bundles.h"

namespace cachewarm::bundle {
namespace {

using agent::CallEntry;
using agent::FailCalls;
using agent::KillAtPoint;

// A store with an old bundle, to which a new one is written under the same tag.
class Scene {
 public:
  Scene(const PackedSample& before, const PackedSample& after) : after_(after) {
    LayoutStore store(directory(), SystemClock());
    EXPECT_TRUE(WriteSample(store, before).ok());
  }
  std::string directory() const { return temp_ / "store"; }

  // Publishes the new bundle; call it in a forked process.
  std::function<bool()> Publish() const {
    return [this] {
      LayoutStore store(directory(), SystemClock());
      return WriteSample(store, after_).ok();
    };
  }
  Digest Tagged() const {
    LayoutStore store(directory(), SystemClock());
    return store.ResolveTag(kRepository, kTag, {}).value_or(Digest());
  }
  void ExpectWhole(const std::string& when) const { ExpectWholeBundle(directory(), when); }
  void ExpectTheNextWriterEndsWell(const std::string& when) const {
    LayoutStore store(directory(), SystemClock());
    const absl::Status written = WriteSample(store, after_);
    EXPECT_TRUE(written.ok()) << when << written;
    ExpectWholeBundle(directory(), when);
    ExpectNoExtraFiles(directory(), when);
    EXPECT_EQ(Tagged(), after_.packed.digest) << when;
  }

 private:
  const TempDir temp_;
  const PackedSample& after_;
};

class LayoutFailure : public ::testing::Test {
 protected:
  void ExpectOldOrNew(const Scene& scene, const std::string& when) {
    scene.ExpectWhole(when);
    const Digest tagged = scene.Tagged();
    EXPECT_TRUE(tagged == old_.packed.digest || tagged == new_.packed.digest) << when;
  }

  const PackedSample old_ = PackTree({{"a", {.content = "old"}}});
  const PackedSample new_ = PackTree(SampleTree());
};

TEST_F(LayoutFailure, KilledWriterLeavesOldOrNewBundle) {
  const int points = [&] {
    const Scene scene(old_, new_);
    const auto whole = KillAtPoint(scene.Publish());
    EXPECT_TRUE(whole.succeeded);
    return whole.points;
  }();
  ASSERT_GT(points, 40) << "ptrace saw too few calls";
  for (int point = 0; point < points; ++point) {
    const std::string when = fmt::format("killed at {}", point);
    const Scene scene(old_, new_);
    ASSERT_TRUE(KillAtPoint(scene.Publish(), point).was_killed) << when;
    ExpectOldOrNew(scene, when);
    scene.ExpectTheNextWriterEndsWell(when);
    ASSERT_FALSE(HasFailure()) << when;
  }
}

TEST_F(LayoutFailure, FailingDiskLeavesWholeBundle) {
  const struct {
    std::string name;
    int error;
    bool stays;
  } disks[] = {{"full once", ENOSPC, false},
               {"full from then on", ENOSPC, true},
               {"broken once", EIO, false},
               {"broken from then on", EIO, true}};
  for (const auto& disk : disks) {
    for (int point = 0;; ++point) {
      const std::string when = fmt::format("{} at {}", disk.name, point);
      const Scene scene(old_, new_);
      int seen = 0;
      const auto run = FailCalls(scene.Publish(), [&](const CallEntry& call) {
        // A full disk still allows deletions.
        const bool frees = call.number == SYS_unlinkat;
        if (!call.ChangesFiles() || (frees && disk.stays)) {
          return 0;
        }
        const int at = seen++;
        return at == point || (disk.stays && at > point) ? disk.error : 0;
      });
      if (seen <= point) {
        break;
      }
      ExpectOldOrNew(scene, when);
      if (run.succeeded) {
        EXPECT_EQ(scene.Tagged(), new_.packed.digest) << when;
      }
      scene.ExpectTheNextWriterEndsWell(when);
      ASSERT_FALSE(HasFailure()) << when;
    }
  }
}

// Returns the error of NFS for calls that it does not support: hard links, unnamed temporary files,
// preallocation before 4.2, renames with flags, and exclusive locks of files that are not open for
// writing (flock(2), "NFS details").
int RefusalOfNfs(const CallEntry& call) {
  constexpr uint64_t kTemporary = O_TMPFILE & ~O_DIRECTORY;
  switch (call.number) {
    case SYS_linkat:
      return EPERM;
    case SYS_fallocate:
      return EOPNOTSUPP;
    case SYS_openat:
      return (call.arguments[2] & kTemporary) != 0 ? EOPNOTSUPP : 0;
    case SYS_renameat2:
      return call.arguments[4] != 0 ? EINVAL : 0;
    case SYS_flock: {
      std::ifstream about(
          fmt::format("/proc/{}/fdinfo/{}", call.process, static_cast<int>(call.arguments[0])));
      std::string word;
      unsigned flags = 0;
      while (about >> word && word != "flags:") {
      }
      about >> std::oct >> flags;
      const bool exclusive = (call.arguments[1] & LOCK_EX) != 0;
      return exclusive && (flags & O_ACCMODE) == O_RDONLY ? EBADF : 0;
    }
    default:
      return 0;
  }
}

TEST_F(LayoutFailure, WritesBundleAndCleansUpOnNfs) {
  const Scene scene(old_, new_);
  ASSERT_TRUE(KillAtPoint(scene.Publish(), 20).was_killed);
  int refused = 0;
  const auto run = FailCalls(scene.Publish(), [&](const CallEntry& call) {
    const int error = RefusalOfNfs(call);
    refused += error != 0 ? 1 : 0;
    return error;
  });
  EXPECT_TRUE(run.succeeded);
  EXPECT_EQ(refused, 0);
  scene.ExpectWhole("on NFS");
  EXPECT_EQ(scene.Tagged(), new_.packed.digest);
  ExpectNoExtraFiles(scene.directory(), "on NFS");
}

// Returns true for calls that find and read files.
bool ReadsFiles(const CallEntry& call) {
  switch (call.number) {
    case SYS_openat2:
      return !call.ChangesFiles();
    case SYS_newfstatat:
    case SYS_pread64:
      return true;
    default:
      return false;
  }
}

// Reads the blobs of the tagged bundle without threads. Returns true if they match `sample`.
bool ReadsWhole(Store& store, const PackedSample& sample) {
  const auto digest = store.ResolveTag(kRepository, kTag, {});
  const auto manifest = digest.ok() ? store.ReadManifest(kRepository, *digest, {})
                                    : absl::StatusOr<std::string>(digest.status());
  TextSink layer(64U << 20U);
  const Descriptor& blob = sample.packed.manifest.layers[0];
  return manifest.ok() && *manifest == sample.packed.manifest_text &&
         store
             .ReadBlob(kRepository, {.digest = blob.digest, .bytes = blob.bytes}, layer,
                       std::stop_token())
             .ok() &&
         layer.text() == sample.layer;
}

TEST_F(LayoutFailure, StaleNfsHandleIsRetried) {
  const Scene scene(new_, new_);
  int points = 0;
  for (int point = 0;; ++point) {
    int seen = 0;
    const auto run = FailCalls(
        [&] {
          RetryStore store(std::make_unique<LayoutStore>(scene.directory(), SystemClock()),
                           SystemClock(), [] { return 0.0; },
                           {.backoff = {.first = Duration(1), .most = Duration(1)}});
          return ReadsWhole(store, new_);
        },
        [&](const CallEntry& call) { return ReadsFiles(call) && seen++ == point ? ESTALE : 0; });
    if (seen <= point) {
      break;
    }
    EXPECT_TRUE(run.succeeded) << point;
    ++points;
  }
  EXPECT_GT(points, 5) << "ptrace saw too few calls";
}

TEST_F(LayoutFailure, InvisibleNameIsNotFound) {
  const Scene scene(new_, new_);
  for (int point = 0;; ++point) {
    int seen = 0;
    const auto run = FailCalls(
        [&] {
          LayoutStore store(scene.directory(), SystemClock());
          const auto digest = store.ResolveTag(kRepository, kTag, {});
          const auto bundle = digest.ok() ? ReadBundle({store, kRepository}, *digest, {})
                                          : absl::StatusOr<Bundle>(digest.status());
          return bundle.ok() ? bundle->manifest.layers == new_.packed.manifest.layers
                             : absl::IsNotFound(bundle.status());
        },
        [&](const CallEntry& call) {
          return call.number == SYS_openat2 && seen++ == point ? ENOENT : 0;
        });
    if (seen <= point) {
      EXPECT_GT(point, 3) << "ptrace saw too few calls";
      break;
    }
    EXPECT_TRUE(run.succeeded) << point;
  }
}

// Several processes repeatedly write the same bundles and tags, and others.
TEST_F(LayoutFailure, ConcurrentWritersLoseNoBundle) {
  constexpr int kWriters = 3;
  constexpr int kEach = 12;
  const Scene scene(old_, new_);
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = ::fork();
    if (child == 0) {
      LayoutStore store(scene.directory(), SystemClock());
      bool good = true;
      for (int i = 0; i < kEach; ++i) {
        good = WriteSample(store, i % 2 == 0 ? new_ : old_).ok() && good;
        good = store
                   .WriteManifest(kRepository, new_.packed.manifest_text,
                                  fmt::format("k-{}-{}", writer, i), std::stop_token())
                   .ok() &&
               good;
      }
      ::_exit(good ? 0 : 1);
    }
    writers.push_back(child);
  }
  int reads = 0;
  while (!writers.empty()) {
    ExpectOldOrNew(scene, fmt::format("read {}", ++reads));
    std::erase_if(writers, [&](pid_t writer) {
      int status = 0;
      const bool ended = ::waitpid(writer, &status, WNOHANG) == writer;
      EXPECT_TRUE(!ended || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
      return ended;
    });
  }
  LayoutStore store(scene.directory(), SystemClock());
  for (int writer = 0; writer < kWriters; ++writer) {
    for (int i = 0; i < kEach; ++i) {
      EXPECT_EQ(
          store.ResolveTag(kRepository, fmt::format("k-{}-{}", writer, i), {}).value_or(Digest()),
          new_.packed.digest);
    }
  }
  ExpectNoExtraFiles(scene.directory(), "after all");
}

}  // namespace
}  // namespace cachewarm::bundle

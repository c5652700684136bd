// SPDX-License-Identifier: Apache-2.0
// Packing with several threads: equal bytes, bounded memory, and an end after every error.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/bundle/packer.h"
#include "tests/fakes/await.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

constexpr int64_t kFrame = 4096;

// Files that each need a separate frame.
std::vector<PackFile> OneFileAFrame(size_t count) {
  TestTree tree;
  for (size_t i = 0; i < count; ++i) {
    tree[fmt::format("f{:04}", i)] = {.content = Noise(3000, static_cast<uint32_t>(i))};
  }
  return FilesOf(tree);
}

// Counts the opened sources and calls `on_open` before each.
class Opened {
 public:
  explicit Opened(std::vector<PackFile>& files) {
    for (PackFile& file : files) {
      file.open = [this, open = std::move(file.open)] {
        ++count_;
        return open();
      };
    }
  }
  int count() const { return count_; }

 private:
  std::atomic<int> count_ = 0;
};

class CallSink : public LayerSink {
 public:
  explicit CallSink(std::function<absl::Status()> on_write) : on_write_(std::move(on_write)) {}
  absl::Status Write(std::string_view bytes) override {
    bytes_ += static_cast<int64_t>(bytes.size());
    return on_write_();
  }
  absl::StatusOr<Descriptor> End() override { return Descriptor{.bytes = bytes_}; }

 private:
  int64_t bytes_ = 0;
  std::function<absl::Status()> on_write_;
};

class PackThreads : public ::testing::TestWithParam<int> {
 protected:
  PackOptions Options() const { return {.frame_bytes = kFrame, .threads = GetParam()}; }
  int threads() const { return GetParam(); }
};

TEST_P(PackThreads, DoNotChangeTheBytes) {
  for (const int64_t frame_bytes : {int64_t{4096}, int64_t{16384}, int64_t{1} << 20}) {
    const PackedSample one = PackTree(ManyFiles(), frame_bytes, 1);
    const PackedSample several = PackTree(ManyFiles(), frame_bytes, threads());
    EXPECT_EQ(several.packed.digest, one.packed.digest);
    EXPECT_EQ(several.layer, one.layer);
  }
}

TEST_P(PackThreads, MakeTheTarOfTheFirstRelease) {
  // Compares the tar, because a different version of zstd may compress it to different bytes.
  EXPECT_EQ(PackTree(SampleTree(), kFrame, threads()).packed.config.layers[0].diff_id.hex(),
            "29c6f43ed77074f1bc19a1d4ef0c5b67c99c6d9d7f77b31634f9945c1007081d");
}

TEST_P(PackThreads, OpenEachFileOnce) {
  std::vector<PackFile> files = FilesOf(ManyFiles());
  std::mutex mutex;
  std::multiset<std::string> opened;
  for (PackFile& file : files) {
    file.open = [&, path = file.path, open = std::move(file.open)] {
      const std::lock_guard lock(mutex);
      opened.insert(path);
      return open();
    };
  }
  LayerText layer(64U << 20U);
  ASSERT_TRUE(Pack(files, {}, Options(), layer, {}).ok());
  EXPECT_EQ(opened.size(), files.size());
  for (const PackFile& file : files) {
    EXPECT_EQ(opened.count(file.path), 1U) << file.path;
  }
}

TEST_P(PackThreads, HoldAtMostOneFrameMoreThanThreads) {
  std::vector<PackFile> files = OneFileAFrame(50);
  const Opened opened(files);
  int emitted = 0;
  int most_ahead = 0;
  CallSink slow([&] {
    // Gives the workers time to run ahead of the sink.
    const int ahead = std::min(50, emitted + threads() + 1);
    EXPECT_TRUE(fakes::Await([&] { return opened.count() >= ahead; }));
    most_ahead = std::max(most_ahead, opened.count() - emitted);
    ++emitted;
    return absl::OkStatus();
  });
  ASSERT_TRUE(Pack(std::move(files), {}, Options(), slow, {}).ok());
  EXPECT_EQ(emitted, 51);
  EXPECT_EQ(most_ahead, threads() + 1);
}

TEST_P(PackThreads, StopOnSinkError) {
  std::vector<PackFile> files = OneFileAFrame(500);
  const Opened opened(files);
  int writes = 0;
  CallSink full(
      [&] { return ++writes < 10 ? absl::OkStatus() : absl::ResourceExhaustedError("full"); });
  EXPECT_TRUE(absl::IsResourceExhausted(Pack(std::move(files), {}, Options(), full, {}).status()));
  EXPECT_EQ(writes, 10);
  EXPECT_LE(opened.count(), 10 + threads());
}

TEST_P(PackThreads, ReportTheFirstFailedFile) {
  std::vector<PackFile> files = OneFileAFrame(100);
  const Opened opened(files);
  for (const size_t bad : {40U, 41U, 42U, 43U}) {
    files[bad].open = [bad] { return absl::PermissionDeniedError(std::to_string(bad)); };
  }
  int writes = 0;
  CallSink sink([&] {
    ++writes;
    return absl::OkStatus();
  });
  EXPECT_EQ(Pack(std::move(files), {}, Options(), sink, {}).status(),
            absl::PermissionDeniedError("40"));
  EXPECT_EQ(writes, 40);
  EXPECT_LE(opened.count(), 40 + threads());
}

// Returns some bytes and then an error.
class BreakingSource : public Source {
 public:
  explicit BreakingSource(size_t good_bytes) : left_(good_bytes) {}
  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    if (left_ == 0) {
      return absl::DataLossError("broken");
    }
    const size_t size = std::min(buffer.size(), left_);
    std::fill_n(buffer.begin(), size, 'b');
    left_ -= size;
    return size;
  }

 private:
  size_t left_;
};

TEST_P(PackThreads, StopOnErrorInsideALargeFile) {
  for (const size_t good_bytes : {size_t{0}, size_t{1}, size_t{9000}, size_t{99'999}}) {
    std::vector<PackFile> files = OneFileAFrame(3);
    files.push_back({.path = "large",
                     .kind = "triton",
                     .bytes = 100'000,
                     .open = [good_bytes]() -> absl::StatusOr<std::unique_ptr<Source>> {
                       return std::make_unique<BreakingSource>(good_bytes);
                     }});
    LayerText layer(1U << 20U);
    EXPECT_EQ(Pack(std::move(files), {}, Options(), layer, {}).status(),
              absl::DataLossError("broken"))
        << good_bytes;
  }
}

TEST_P(PackThreads, AbortOnWrongSizeOfALargeFile) {
  for (const int64_t claimed : {99'999, 100'001, 8191, 8193}) {
    std::vector<PackFile> files = {FileOf("a", {.content = Noise(100'000, 1)})};
    files[0].bytes = claimed;
    LayerText layer(1U << 20U);
    EXPECT_TRUE(absl::IsAborted(Pack(std::move(files), {}, Options(), layer, {}).status()))
        << claimed;
  }
}

TEST_P(PackThreads, StopWithinOneFrame) {
  std::vector<PackFile> files = OneFileAFrame(500);
  const Opened opened(files);
  std::stop_source stop;
  int writes = 0;
  CallSink sink([&] {
    if (++writes == 7) {
      stop.request_stop();
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(
      absl::IsCancelled(Pack(std::move(files), {}, Options(), sink, stop.get_token()).status()));
  EXPECT_EQ(writes, 7);
  EXPECT_LE(opened.count(), 7 + threads());
}

INSTANTIATE_TEST_SUITE_P(Counts, PackThreads, ::testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace cachewarm::bundle

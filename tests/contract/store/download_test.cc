// SPDX-License-Identifier: Apache-2.0
// Downloads from a real registry over connections that break.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/bundle/store/open.h"
#include "lib/bundle/transfer.h"
#include "tests/contract/store/faulty_proxy.h"
#include "tests/contract/store/registry_process.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

constexpr char kRepository[] = "team/llama";
constexpr int64_t kAtOnce = 700'000;
// Bytes that the client reads from a socket at once. It discards an incomplete read.
constexpr int64_t kPiece = 256 << 10;

class BrokenDownload : public ::testing::Test {
 protected:
  void SetUp() override {
    if (RegistryProcess::Program().empty()) {
      GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
    }
    http::PrepareProcess();
    registry_ = std::make_unique<RegistryProcess>();
    proxy_ = std::make_unique<FaultyProxy>(
        FaultyProxyOptions{.registry = registry_->address(), .range_bytes_max = size_t{kAtOnce}});
    store_ = *OpenStore({.url = "oci://" + proxy_->address()}, SystemClock());
  }

  std::unique_ptr<RegistryProcess> registry_;
  std::unique_ptr<FaultyProxy> proxy_;
  std::unique_ptr<Store> store_;
};

TEST_F(BrokenDownload, ResumesAtOffset) {
  const std::string bytes = Noise(2'500'000, 1);
  const auto blob = WriteSmallBlob(*store_, kRepository, bytes, {});
  ASSERT_TRUE(blob.ok()) << blob.status();
  TextSink text(bytes.size());
  const absl::Status read = store_->ReadBlob(
      kRepository, {.digest = blob->digest, .offset = 100, .bytes = blob->bytes - 100}, text, {});
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_TRUE(text.text() == bytes.substr(100));
  const std::vector<ByteRange> ranges = proxy_->ranges();
  ASSERT_GT(ranges.size(), 3U);
  EXPECT_EQ(ranges[0].first, 100);
  for (size_t i = 1; i < ranges.size(); ++i) {
    EXPECT_GT(ranges[i].first, ranges[i - 1].first + kAtOnce - kPiece) << "too much came twice";
    EXPECT_LE(ranges[i].first, ranges[i - 1].first + kAtOnce);
    EXPECT_EQ(ranges[i].last, blob->bytes - 1);
  }
}

TEST_F(BrokenDownload, OfBundleUnpacksWholeTree) {
  const TestTree tree = {{"inductor/large.so", {.content = Noise(1'500'000, 2)}},
                         {"inductor/small.py", {.content = "print()\n"}}};
  const RepositoryRef place{*store_, kRepository};
  const auto published = Publish(place, FilesOf(tree), SampleFacts(), {.tag = "k-1"}, {});
  ASSERT_TRUE(published.ok()) << published.status();
  const auto bundle = ReadBundle(place, published->digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const size_t before = proxy_->ranges().size();
  const TempDir staging;
  const fs::Dir dir = staging.Open();
  const absl::Status extracted = Extract(place, {.bundle = *bundle, .staging = dir}, {});
  ASSERT_TRUE(extracted.ok()) << extracted;
  EXPECT_EQ(ReadTree(dir), ExpectedTree(tree));
  EXPECT_GT(proxy_->ranges().size(), before + 1) << "nothing broke";
}

}  // namespace
}  // namespace cachewarm::bundle

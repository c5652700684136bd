// SPDX-License-Identifier: Apache-2.0
// Uploads that break off, to a real registry (if CACHEWARM_REGISTRY_BIN names one).
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/store/registry/registry_store.h"
#include "lib/bundle/transfer.h"
#include "tests/contract/store/broken_client.h"
#include "tests/contract/store/registry_process.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using Break = BrokenClient::Break;

constexpr char kRepository[] = "team/llama";
constexpr int64_t kChunk = 256 << 10;

class BrokenUpload : public ::testing::Test {
 protected:
  void SetUp() override {
    if (RegistryProcess::Program().empty()) {
      GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
    }
    http::PrepareProcess();
    registry_ = std::make_unique<RegistryProcess>();
  }

  std::unique_ptr<Store> Open(BrokenClient::Decide decide) {
    return std::make_unique<RegistryStore>(
        RegistryOptions{
            .session = {.origin = "http://" + registry_->address(), .host = registry_->address()},
            .chunk_bytes = kChunk},
        std::make_unique<BrokenClient>(*http::MakeClient({}), std::move(decide)), SystemClock(),
        [] { return 0.0; });
  }

  static absl::StatusOr<Descriptor> Write(Store& store, const std::string& bytes) {
    const auto upload = store.StartBlob(kRepository, {});
    if (const absl::Status written = (*upload)->Write(bytes); !written.ok()) {
      return written;
    }
    return (*upload)->Commit();
  }

  // Returns the unfinished uploads on the registry's disk.
  int OpenUploads() const {
    const auto directory = std::filesystem::path(registry_->content_directory()) /
                           "docker/registry/v2/repositories" / kRepository / "_uploads";
    std::error_code none;
    const std::filesystem::directory_iterator uploads(directory, none);
    return static_cast<int>(std::count_if(begin(uploads), end(uploads), [](const auto& upload) {
      return std::filesystem::exists(upload.path() / "data");
    }));
  }

  std::unique_ptr<RegistryProcess> registry_;
};

// Breaks the n-th request of `method`.
BrokenClient::Decide BreakNth(http::Method method, int n, Break how) {
  return [=, seen = std::make_shared<std::atomic<int>>(0)](const http::Request& request) {
    return request.method == method && (*seen)++ == n ? how : Break::kNot;
  };
}

TEST_F(BrokenUpload, ResumesOrAsksForWholeBlob) {
  uint32_t seed = 0;
  for (const http::Method method : {http::Method::kPatch, http::Method::kPut}) {
    for (const int n : {0, 1}) {
      for (const Break how : {Break::kBeforeSending, Break::kHalfWay, Break::kAfterTheAnswer}) {
        const std::string bytes = Noise(3 * kChunk + 1000, ++seed);
        const auto store = Open(BreakNth(method, n, how));
        auto written = Write(*store, bytes);
        if (how == Break::kBeforeSending) {
          EXPECT_TRUE(written.ok()) << written.status();
        }
        if (!written.ok()) {
          EXPECT_TRUE(absl::IsUnavailable(written.status())) << written.status();
          EXPECT_THAT(Message(written.status()), ::testing::HasSubstr("send the whole blob again"));
          written = Write(*store, bytes);
        }
        ASSERT_TRUE(written.ok()) << written.status();
        TextSink text(bytes.size());
        ASSERT_TRUE(store
                        ->ReadBlob(kRepository,
                                   {.digest = written->digest, .bytes = written->bytes}, text, {})
                        .ok());
        EXPECT_TRUE(text.text() == bytes);
      }
    }
  }
}

TEST_F(BrokenUpload, DestroyedUploadLeavesNothing) {
  const auto store = Open([](const http::Request&) { return Break::kNot; });
  {
    const auto upload = store->StartBlob(kRepository, {});
    ASSERT_TRUE((*upload)->Write(Noise(2 * kChunk, 1)).ok());
    EXPECT_EQ(OpenUploads(), 1);
  }
  EXPECT_EQ(OpenUploads(), 0);
}

TEST_F(BrokenUpload, MountNeedsNoUpload) {
  std::atomic<int> uploads = 0;
  const auto store = Open([&uploads](const http::Request& request) {
    const bool is_blob = request.url.find("/blobs/") != std::string::npos;
    uploads += is_blob && !request.body.empty() ? 1 : 0;
    return Break::kNot;
  });
  const RepositoryRef from{*store, kRepository};
  const RepositoryRef to{*store, "team/other"};
  const auto published = Publish(from, FilesOf(SampleTree()), SampleFacts(), {}, {});
  ASSERT_TRUE(published.ok()) << published.status();
  const auto bundle = ReadBundle(from, published->digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_GT(uploads.exchange(0), 0);
  const auto copied = CopyBundle(from, to, *bundle, "k-1", {});
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(uploads, 0);
  EXPECT_EQ(copied->copied_bytes, 0);
  EXPECT_EQ(copied->present_bytes, published->bytes);
  EXPECT_TRUE(Verify(to, *bundle, {}, {}).ok());
}

}  // namespace
}  // namespace cachewarm::bundle

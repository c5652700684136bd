// SPDX-License-Identifier: Apache-2.0
// A real registry on a full disk (a small tmpfs).
#include <cstring>
#include <memory>
#include <string>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/store/open.h"
#include "lib/bundle/store/registry/registry_store.h"
#include "lib/bundle/transfer.h"
#include "tests/contract/store/registry_process.h"
#include "tests/fakes/small_disk.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

constexpr char kRepository[] = "team/llama";
constexpr int kDiskKibibytes = 32 << 10;

class RegistryOnAFullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (RegistryProcess::Program().empty()) {
      GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
    }
    if (disk_.error() != 0) {
      GTEST_SKIP() << "mounting a tmpfs is refused here: " << std::strerror(disk_.error());
    }
    http::PrepareProcess();
    registry_ =
        std::make_unique<RegistryProcess>(RegistrySettings{.content_directory = disk_ / "content"});
    // One attempt: a full disk does not recover by retrying.
    store_ = std::make_unique<RegistryStore>(
        RegistryOptions{.session = {.origin = "http://" + registry_->address(),
                                    .host = registry_->address(),
                                    .tries = 1},
                        .chunk_bytes = 256 << 10},
        *http::MakeClient({}), SystemClock(), [] { return 0.0; });
  }

  absl::StatusOr<Publication> PublishTree(uint32_t seed, const std::string& tag) {
    return Publish({*store_, kRepository},
                   FilesOf({{"inductor/large.so", {.content = Noise(1'000'000, seed)}}}),
                   SampleFacts(), {.tag = tag}, {});
  }

  absl::Status Check(const Digest& digest) {
    const RepositoryRef place{*store_, kRepository};
    const auto bundle = ReadBundle(place, digest, {});
    return bundle.ok() ? Verify(place, *bundle, {}, {}) : bundle.status();
  }

  const SmallDisk disk_{kDiskKibibytes};
  std::unique_ptr<RegistryProcess> registry_;
  std::unique_ptr<RegistryStore> store_;
};

TEST_F(RegistryOnAFullDisk, KeepsBundlesAndAcceptsNewOnesAfterCleanup) {
  const auto old = PublishTree(1, "k-old");
  ASSERT_TRUE(old.ok()) << old.status();
  int refused = 0;
  int explained = 0;
  // The disk is full at the first byte of an upload, inside the layer, when the blob is renamed,
  // later.
  for (const int kibibytes : {0, 4, 8, 100, 500, 990, 1000, 1004, 1008, 1012, 1016, 1020, 1030}) {
    const std::string when = fmt::format("{} KiB free: ", kibibytes);
    const auto seed = static_cast<uint32_t>(2 + kibibytes);
    const std::string tag = fmt::format("k-{}", kibibytes);
    disk_.FillUntilFree(kibibytes);
    const auto published = PublishTree(seed, tag);
    if (!published.ok()) {
      ++refused;
      EXPECT_TRUE(absl::IsUnavailable(published.status())) << when << published.status();
      const std::string words = Message(published.status());
      explained += words.find("o space left on device") == std::string::npos ? 0 : 1;
      EXPECT_FALSE(store_->ResolveTag(kRepository, tag, {}).ok()) << when;
    }
    EXPECT_TRUE(Check(old->digest).ok()) << when << Check(old->digest);
    disk_.RemoveFiller();
    const auto again = PublishTree(seed, tag);
    ASSERT_TRUE(again.ok()) << when << again.status();
    EXPECT_TRUE(Check(again->digest).ok()) << when << Check(again->digest);
    EXPECT_EQ(store_->ResolveTag(kRepository, tag, {}).value_or(Digest()), again->digest) << when;
  }
  // docker-registry 2.8 does not report why a blob cannot be renamed.
  EXPECT_GE(refused, 6);
  EXPECT_GE(explained, 6);
}

}  // namespace
}  // namespace cachewarm::bundle

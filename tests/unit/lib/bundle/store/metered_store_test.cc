// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/metered/metered_store.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_store.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

constexpr char kRepository[] = "team/llama";

class MeteredStoreTest : public ::testing::Test {
 protected:
  MeteredStoreTest() {
    auto inner = std::make_unique<MemoryStore>();
    inner_ = inner.get();
    // Every call takes a second.
    inner_->SetFault([this](std::string_view) {
      clock_.Advance(Duration(1000));
      return fault_;
    });
    store_ = std::make_unique<MeteredStore>(std::move(inner), clock_, [this](const StoreCall& c) {
      calls_.push_back(fmt::format("{} {} {} B {} ms", c.operation,
                                   absl::StatusCodeToString(c.code), c.bytes, c.time.count()));
    });
  }

  std::vector<std::string> TakeCalls() { return std::exchange(calls_, {}); }

  fakes::FakeClock clock_;
  absl::Status fault_;
  MemoryStore* inner_ = nullptr;
  std::vector<std::string> calls_;
  std::unique_ptr<MeteredStore> store_;
};

using Lines = std::vector<std::string>;

TEST_F(MeteredStoreTest, ReportsEveryCallOnce) {
  const PackedSample sample = PackTree({{"a", {.content = "x"}}});
  const Digest layer = *[&]() -> absl::StatusOr<Digest> {
    const auto blob = WriteSmallBlob(*store_, kRepository, sample.layer, {});
    return blob.ok() ? absl::StatusOr<Digest>(blob->digest) : blob.status();
  }();
  const auto bytes = static_cast<int64_t>(sample.layer.size());
  EXPECT_EQ(TakeCalls(), (Lines{"has_blob OK 0 B 1000 ms",
                                fmt::format("write_blob OK {} B 3000 ms", sample.layer.size())}));
  ASSERT_TRUE(WriteSmallBlob(*inner_, kRepository, sample.packed.config_text, {}).ok());
  const auto digest =
      store_->WriteManifest(kRepository, sample.packed.manifest_text, "k-1", std::stop_token());
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_TRUE(store_->ReadManifest(kRepository, *digest, {}).ok());
  EXPECT_TRUE(store_->ResolveTag(kRepository, "k-1", {}).ok());
  EXPECT_TRUE(store_->MountBlob(kRepository, "team/other", layer, {}).ok());
  EXPECT_TRUE(store_->Ping({}).ok());
  TextSink text(1U << 20U);
  EXPECT_TRUE(
      store_->ReadBlob(kRepository, {.digest = layer, .offset = 2, .bytes = bytes - 2}, text, {})
          .ok());
  const size_t manifest = sample.packed.manifest_text.size();
  EXPECT_EQ(TakeCalls(),
            (Lines{fmt::format("write_manifest OK {} B 1000 ms", manifest),
                   fmt::format("read_manifest OK {} B 1000 ms", manifest),
                   "resolve_tag OK 0 B 1000 ms", "mount_blob OK 0 B 0 ms", "ping OK 0 B 1000 ms",
                   fmt::format("read_blob OK {} B 1000 ms", bytes - 2)}));
}

TEST_F(MeteredStoreTest, ReportsErrorCode) {
  EXPECT_TRUE(absl::IsNotFound(store_->ResolveTag(kRepository, "k", {}).status()));
  fault_ = absl::UnavailableError("away");
  EXPECT_FALSE(store_->HasBlob(kRepository, DigestOf(""), {}).ok());
  EXPECT_FALSE(store_->StartBlob(kRepository, {}).ok());
  EXPECT_FALSE(store_->ReadManifest(kRepository, DigestOf(""), {}).ok());
  EXPECT_EQ(TakeCalls(),
            (Lines{"resolve_tag NOT_FOUND 0 B 1000 ms", "has_blob UNAVAILABLE 0 B 1000 ms",
                   "write_blob UNAVAILABLE 0 B 1000 ms", "read_manifest UNAVAILABLE 0 B 1000 ms"}));
}

TEST_F(MeteredStoreTest, ReportsUploadAsOneCall) {
  { const auto upload = store_->StartBlob(kRepository, {}); }
  {
    const auto upload = store_->StartBlob(kRepository, {});
    EXPECT_TRUE((*upload)->Write("abc").ok());
    fault_ = absl::ResourceExhaustedError("full");
    EXPECT_FALSE((*upload)->Write("defg").ok());
    fault_ = absl::OkStatus();
  }
  EXPECT_EQ(TakeCalls(), (Lines{"write_blob CANCELLED 0 B 1000 ms",
                                "write_blob RESOURCE_EXHAUSTED 3 B 3000 ms"}));
}

TEST_F(MeteredStoreTest, ExcludesTimeOfTheConsumer) {
  class Slow : public Sink {
   public:
    explicit Slow(fakes::FakeClock& clock) : clock_(clock) {}
    absl::Status Write(std::string_view) override {
      clock_.Advance(Duration(5000));
      return absl::OkStatus();
    }

   private:
    fakes::FakeClock& clock_;
  };
  const auto blob = WriteSmallBlob(*inner_, kRepository, "abc", {});
  Slow slow(clock_);
  EXPECT_TRUE(store_->ReadBlob(kRepository, {.digest = blob->digest, .bytes = 3}, slow, {}).ok());
  EXPECT_EQ(TakeCalls(), Lines{"read_blob OK 3 B 1000 ms"});
}

}  // namespace
}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/mirrors/mirrored_store.h"

#include <algorithm>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/referrers/artifact.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_store.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

constexpr char kRepository[] = "team/llama";

// A store in memory that counts its calls and may break off a read.
class CountedStore : public MemoryStore {
 public:
  absl::Status ReadBlob(const std::string& repository, const BlobRange& range, Sink& sink,
                        std::stop_token stop) override {
    reads.push_back(range);
    if (breaks_after < 0) {
      return MemoryStore::ReadBlob(repository, range, sink, stop);
    }
    BlobRange part = range;
    part.bytes = std::min(part.bytes, breaks_after);
    CW_RETURN_IF_ERROR(MemoryStore::ReadBlob(repository, part, sink, stop));
    return absl::UnavailableError("connection reset");
  }
  std::vector<BlobRange> reads;
  int64_t breaks_after = -1;
};

class MirroredStoreTest : public ::testing::Test {
 protected:
  MirroredStoreTest() {
    std::vector<std::unique_ptr<Store>> mirrors;
    for (CountedStore*& mirror : mirrors_) {
      mirrors.push_back(std::make_unique<CountedStore>());
      mirror = static_cast<CountedStore*>(mirrors.back().get());
    }
    auto origin = std::make_unique<CountedStore>();
    origin_ = origin.get();
    store_ = std::make_unique<MirroredStore>(std::move(origin), std::move(mirrors), clock_,
                                             [] { return 0.0; });
  }

  // Stores a blob in the origin and in the given mirrors.
  Descriptor Keep(const std::string& bytes, const std::vector<int>& mirrors) {
    for (const int mirror : mirrors) {
      EXPECT_TRUE(WriteSmallBlob(*mirrors_[mirror], kRepository, bytes, {}).ok());
    }
    return *WriteSmallBlob(*origin_, kRepository, bytes, {});
  }

  absl::StatusOr<std::string> Read(const Descriptor& blob, int64_t offset = 0) {
    TextSink text(1U << 20U);
    const BlobRange range{.digest = blob.digest, .offset = offset, .bytes = blob.bytes - offset};
    CW_RETURN_IF_ERROR(store_->ReadBlob(kRepository, range, text, {}));
    return text.text();
  }

  fakes::FakeClock clock_;
  CountedStore* mirrors_[2] = {};
  CountedStore* origin_ = nullptr;
  std::unique_ptr<MirroredStore> store_;
};

TEST_F(MirroredStoreTest, ReadsFromTheFirstMirrorThatHasTheBlob) {
  const Descriptor first = Keep("in both", {0, 1});
  const Descriptor second = Keep("in the second", {1});
  const Descriptor third = Keep("in none", {});
  EXPECT_EQ(*Read(first), "in both");
  EXPECT_EQ(mirrors_[1]->reads.size(), 0U);
  EXPECT_EQ(*Read(second), "in the second");
  EXPECT_EQ(mirrors_[1]->reads.size(), 1U);
  EXPECT_EQ(origin_->reads.size(), 0U);
  EXPECT_EQ(*Read(third), "in none");
  // NOT_FOUND is not a failure: the mirrors were tried each time.
  EXPECT_EQ(mirrors_[0]->reads.size(), 3U);
  EXPECT_EQ(mirrors_[1]->reads.size(), 2U);
  EXPECT_EQ(origin_->reads.size(), 1U);
}

TEST_F(MirroredStoreTest, NextMirrorContinuesBrokenRead) {
  const std::string bytes = Noise(1000, 1);
  const Descriptor blob = Keep(bytes, {0, 1});
  mirrors_[0]->breaks_after = 300;
  mirrors_[1]->breaks_after = 200;
  EXPECT_TRUE(*Read(blob) == bytes);
  EXPECT_EQ(mirrors_[1]->reads.at(0).offset, 300);
  EXPECT_EQ(origin_->reads.at(0).offset, 500);
  EXPECT_EQ(origin_->reads.at(0).bytes, 500);
}

TEST_F(MirroredStoreTest, FailedMirrorIsSkippedWithBackoff) {
  mirrors_[0]->SetFault([](std::string_view) { return absl::UnavailableError("down"); });
  int number = 0;
  const auto asked = [&] {
    const size_t before = mirrors_[0]->reads.size();
    const Descriptor blob = Keep(Noise(10, static_cast<uint32_t>(++number)), {1});
    EXPECT_TRUE(Read(blob).ok());
    return mirrors_[0]->reads.size() > before;
  };
  EXPECT_TRUE(asked());
  EXPECT_FALSE(asked());
  clock_.Advance(std::chrono::seconds(29));
  EXPECT_FALSE(asked());
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(asked());
  clock_.Advance(std::chrono::seconds(59));
  EXPECT_FALSE(asked());
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(asked());
  // A success resets the failures.
  mirrors_[0]->SetFault({});
  const Descriptor there = Keep("there again", {0});
  clock_.Advance(std::chrono::minutes(10));
  EXPECT_TRUE(Read(there).ok());
  mirrors_[0]->SetFault([](std::string_view) { return absl::UnavailableError("down"); });
  EXPECT_TRUE(asked());
  clock_.Advance(std::chrono::seconds(30));
  EXPECT_TRUE(asked());
}

TEST_F(MirroredStoreTest, RepeatedReadUsesTheOrigin) {
  const Descriptor blob = Keep("right", {0, 1});
  ASSERT_TRUE(mirrors_[0]->Corrupt(kRepository, blob.digest, "wrong"));
  // ReadSmallBlob() detects it only after the read.
  EXPECT_TRUE(absl::IsDataLoss(ReadSmallBlob(*store_, kRepository, blob, 100, {}).status()));
  EXPECT_EQ(*ReadSmallBlob(*store_, kRepository, blob, 100, {}), "right");
  EXPECT_EQ(mirrors_[0]->reads.size(), 1U);
  // Also if every mirror is wrong.
  const Descriptor other = Keep("other", {0, 1});
  ASSERT_TRUE(mirrors_[0]->Corrupt(kRepository, other.digest, "wrong"));
  ASSERT_TRUE(mirrors_[1]->Corrupt(kRepository, other.digest, "wrong"));
  EXPECT_FALSE(ReadSmallBlob(*store_, kRepository, other, 100, {}).ok());
  EXPECT_EQ(*ReadSmallBlob(*store_, kRepository, other, 100, {}), "other");
}

TEST_F(MirroredStoreTest, DataLossOfSinkSkipsTheMirror) {
  class Checking : public Sink {
   public:
    absl::Status Write(std::string_view) override { return absl::DataLossError("a frame"); }
  } checking;
  const Descriptor blob = Keep("bytes", {0, 1});
  EXPECT_TRUE(absl::IsDataLoss(
      store_->ReadBlob(kRepository, {.digest = blob.digest, .bytes = blob.bytes}, checking, {})));
  EXPECT_EQ(mirrors_[1]->reads.size(), 0U);
  const Descriptor next = Keep("next", {0, 1});
  EXPECT_TRUE(Read(next).ok());
  EXPECT_EQ(mirrors_[0]->reads.size(), 1U);
}

TEST_F(MirroredStoreTest, SinkErrorDoesNotSkipTheMirror) {
  const Descriptor blob = Keep("ten bytes!", {0});
  TextSink small(3);
  EXPECT_TRUE(absl::IsResourceExhausted(
      store_->ReadBlob(kRepository, {.digest = blob.digest, .bytes = blob.bytes}, small, {})));
  EXPECT_EQ(origin_->reads.size(), 0U);
  const Descriptor next = Keep("next", {0});
  EXPECT_TRUE(Read(next).ok());
  EXPECT_EQ(mirrors_[0]->reads.size(), 2U);
}

TEST_F(MirroredStoreTest, MirrorIsUsedAgainAfterTenMinutes) {
  const Descriptor blob = Keep("bytes", {0});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Read(blob).ok());
  }
  EXPECT_EQ(mirrors_[0]->reads.size(), 1U);
  EXPECT_TRUE(Read(blob, 2).ok());  // a different range
  EXPECT_EQ(mirrors_[0]->reads.size(), 2U);
  clock_.Advance(std::chrono::minutes(10));
  EXPECT_TRUE(Read(blob).ok());
  EXPECT_EQ(mirrors_[0]->reads.size(), 3U);
}

TEST_F(MirroredStoreTest, ReadsManifestsByDigestFromMirrors) {
  const PackedSample sample = PackTree({{"a", {.content = "x"}}});
  for (Store* store : {static_cast<Store*>(mirrors_[0]), static_cast<Store*>(origin_)}) {
    ASSERT_TRUE(WriteSmallBlob(*store, kRepository, sample.layer, {}).ok());
    ASSERT_TRUE(WriteSmallBlob(*store, kRepository, sample.packed.config_text, {}).ok());
    ASSERT_TRUE(store->WriteManifest(kRepository, sample.packed.manifest_text, "k-1", {}).ok());
  }
  int origin_calls = 0;
  origin_->SetFault([&](std::string_view call) {
    origin_calls += call == "ReadManifest" ? 1 : 0;
    return absl::OkStatus();
  });
  EXPECT_TRUE(store_->ReadManifest(kRepository, sample.packed.digest, {}).ok());
  EXPECT_EQ(origin_calls, 0);
  mirrors_[0]->SetFault([](std::string_view) { return absl::DataLossError("not the content"); });
  EXPECT_TRUE(store_->ReadManifest(kRepository, sample.packed.digest, {}).ok());
  EXPECT_EQ(origin_calls, 1);
}

TEST_F(MirroredStoreTest, TagsAndWritesNeverReachAMirror) {
  for (CountedStore* mirror : mirrors_) {
    mirror->SetFault([](std::string_view call) {
      ADD_FAILURE() << call;
      return absl::InternalError("asked");
    });
  }
  const PackedSample sample = PackTree({{"a", {.content = "x"}}});
  ASSERT_TRUE(WriteSmallBlob(*store_, kRepository, sample.layer, {}).ok());
  ASSERT_TRUE(WriteSmallBlob(*store_, kRepository, sample.packed.config_text, {}).ok());
  ASSERT_TRUE(store_->WriteManifest(kRepository, sample.packed.manifest_text, "k-1", {}).ok());
  EXPECT_EQ(*store_->ResolveTag(kRepository, "k-1", {}), sample.packed.digest);
  EXPECT_TRUE(*store_->HasBlob(kRepository, sample.packed.manifest.config.digest, {}));
  EXPECT_TRUE(store_->MountBlob(kRepository, "team/two", DigestOf("x"), {}).ok());
  EXPECT_TRUE(store_->Ping({}).ok());
}

TEST_F(MirroredStoreTest, StopDoesNotSkipTheMirror) {
  const Descriptor blob = Keep("bytes", {0});
  std::stop_source stop;
  stop.request_stop();
  TextSink text(100);
  EXPECT_TRUE(absl::IsCancelled(store_->ReadBlob(
      kRepository, {.digest = blob.digest, .bytes = blob.bytes}, text, stop.get_token())));
  EXPECT_EQ(origin_->reads.size(), 0U);
  EXPECT_TRUE(Read(blob, 1).ok());
  EXPECT_EQ(mirrors_[0]->reads.size(), 2U);
}

TEST_F(MirroredStoreTest, ReadsReferrersFromOriginWhileAvailable) {
  const Artifact artifact{.type = "application/vnd.example.note",
                          .config = *WriteSmallBlob(*mirrors_[1], kRepository, "{}", {}),
                          .layers = {*WriteSmallBlob(*mirrors_[1], kRepository, "x", {})},
                          .subject = {.media_type = "a/b", .digest = DigestOf("bundle")}};
  Artifact typed = artifact;
  typed.config.media_type = typed.layers[0].media_type = "a/b";
  ASSERT_TRUE(mirrors_[1]->WriteReferrer(kRepository, *WriteArtifact(typed), {}).ok());
  const auto ask = [&] {
    return store_->Referrers(kRepository, DigestOf("bundle"), artifact.type, {});
  };
  EXPECT_TRUE(ask()->empty());
  origin_->SetFault([](std::string_view) { return absl::UnavailableError("down"); });
  mirrors_[0]->SetFault([](std::string_view) { return absl::UnavailableError("down too"); });
  EXPECT_EQ(ask()->size(), 1U);
  mirrors_[1]->SetFault([](std::string_view) { return absl::UnavailableError("all are down"); });
  EXPECT_TRUE(absl::IsUnavailable(ask().status()));
  origin_->SetFault([](std::string_view) { return absl::PermissionDeniedError("not you"); });
  EXPECT_TRUE(absl::IsPermissionDenied(ask().status()));
}

}  // namespace
}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <stop_token>
#include <thread>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/bundle/referrers/artifact.h"
#include "lib/bundle/store/layout/index.h"
#include "lib/bundle/store/layout/layout_store.h"
#include "lib/bundle/transfer.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/tree_usage.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

class LayoutTest : public ::testing::Test {
 protected:
  absl::StatusOr<Publication> PublishContent(const std::string& content, const std::string& tag) {
    return Publish(place_, FilesOf({{"a", {.content = content}}}), SampleFacts(), {.tag = tag}, {});
  }
  int64_t UploadsLeft() { return fakes::CountFiles(temp_.Open(), "store/team/llama/.uploads"); }
  std::string path(const std::string& name) { return temp_ / ("store/team/llama/" + name); }

  TempDir temp_;
  LayoutStore store_{temp_ / "store", SystemClock()};
  RepositoryRef place_{store_, "team/llama"};
};

TEST_F(LayoutTest, IsOciImageLayout) {
  const auto published = PublishContent("x", "k-1");
  ASSERT_TRUE(published.ok()) << published.status();
  const fs::Dir dir = *temp_.Open().OpenDir("store/team/llama");
  EXPECT_EQ(*fs::ReadFile(dir, "oci-layout", 100), R"({"imageLayoutVersion":"1.0.0"})");
  const auto index = codec::ParseJson(*fs::ReadFile(dir, "index.json", 10'000));
  ASSERT_TRUE(index.ok());
  const auto& item = (*index)["manifests"][0];
  EXPECT_EQ((*index)["schemaVersion"], 2);
  EXPECT_EQ(item["mediaType"], "application/vnd.oci.image.manifest.v1+json");
  EXPECT_EQ(item["digest"], published->digest.ToString());
  EXPECT_EQ(item["annotations"]["org.opencontainers.image.ref.name"], "k-1");
  const auto blob = dir.Stat("blobs/sha256/" + published->digest.hex());
  ASSERT_TRUE(blob.ok());
  EXPECT_EQ(item["size"], blob->bytes);
  EXPECT_EQ(blob->mode, 0444U);
}

class LayoutSweep : public LayoutTest {
 protected:
  Descriptor Write(const std::string& text) {
    return *WriteSmallBlob(store_, place_.repository, text, {});
  }
  void MakeOld(const Digest& digest) {
    const timespec times[] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, path("blobs/sha256/" + digest.hex()).c_str(), times, 0), 0);
  }
  SweepReport Sweep(SweepRequest request = {}) {
    request.min_age = std::chrono::hours(1);
    const auto swept = store_.SweepBlobs(place_.repository, request, {});
    EXPECT_TRUE(swept.ok()) << swept.status();
    return swept.value_or(SweepReport());
  }
  bool Exists(const Digest& digest) {
    return *temp_.Open().Exists("store/team/llama/blobs/sha256/" + digest.hex());
  }
};

TEST_F(LayoutSweep, RemovesOnlyOldBlobsThatNoManifestNeeds) {
  const auto published = PublishContent("x", "k-1");
  const auto bundle = ReadBundle(place_, published->digest, {});
  const Descriptor young = Write("young");
  const Descriptor old = Write("old blob");
  for (const Digest& digest : {published->digest, bundle->manifest.config.digest,
                               bundle->manifest.layers[0].digest, old.digest}) {
    MakeOld(digest);
  }
  const SweepReport planned = Sweep({.dry_run = true});
  EXPECT_TRUE(planned.supported);
  EXPECT_EQ(planned.blobs, 1);
  EXPECT_TRUE(Exists(old.digest));
  EXPECT_EQ(Sweep().bytes, old.bytes);
  EXPECT_FALSE(Exists(old.digest));
  EXPECT_TRUE(Exists(young.digest));
  EXPECT_TRUE(Verify(place_, *bundle, {}, {}).ok());
  EXPECT_EQ(UploadsLeft(), 0);
}

TEST_F(LayoutSweep, KeepsWhatAWriterHasFound) {
  const Descriptor found = Write("found");
  const Descriptor forgotten = Write("forgotten");
  MakeOld(found.digest);
  MakeOld(forgotten.digest);
  EXPECT_TRUE(*store_.HasBlob(place_.repository, found.digest, {}));
  EXPECT_EQ(Sweep().blobs, 1);
  EXPECT_TRUE(Exists(found.digest));
  EXPECT_FALSE(*store_.HasBlob(place_.repository, forgotten.digest, {}));
}

TEST_F(LayoutSweep, KeepsBundlesThatAreNoLongerListedButWanted) {
  const auto published = PublishContent("x", "k-1");
  const auto bundle = ReadBundle(place_, published->digest, {});
  const std::string manifest = *store_.ReadManifest(place_.repository, published->digest, {});
  const auto list = store_.ListManifests(place_.repository, {});
  ASSERT_TRUE(store_.DeleteManifest(place_.repository, list->manifests[0], {}).ok());
  ASSERT_EQ(Write(manifest).digest, published->digest);
  for (const Digest& digest :
       {published->digest, bundle->manifest.config.digest, bundle->manifest.layers[0].digest}) {
    MakeOld(digest);
  }
  EXPECT_EQ(Sweep({.keep = {published->digest}}).blobs, 0);
  EXPECT_TRUE(Verify(place_, *bundle, {}, {}).ok());
  EXPECT_EQ(Sweep().blobs, 3);
}

TEST_F(LayoutSweep, StoppedSweepRemovesNothing) {
  ASSERT_TRUE(PublishContent("x", "k-1").ok());
  const Descriptor old = Write("old blob");
  MakeOld(old.digest);
  std::stop_source stop;
  stop.request_stop();
  const auto swept =
      store_.SweepBlobs(place_.repository, {.min_age = std::chrono::hours(1)}, stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(swept.status())) << swept.status();
  EXPECT_TRUE(Exists(old.digest));
  const auto planned = store_.SweepBlobs(place_.repository, {.dry_run = true}, stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(planned.status())) << planned.status();
  const auto listed = store_.ListManifests(place_.repository, stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(listed.status())) << listed.status();
}

TEST_F(LayoutSweep, StoppedWalkOfTheBlobsIsCancelled) {
  Write("blob without a manifest");
  std::stop_source stop;
  stop.request_stop();
  const auto planned = store_.SweepBlobs(place_.repository, {.dry_run = true}, stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(planned.status())) << planned.status();
}

TEST_F(LayoutSweep, BlobsOfATooLargeManifestAreUnknown) {
  const auto published = PublishContent("x", "k-1");
  const std::string blob = path("blobs/sha256/" + published->digest.hex());
  ASSERT_EQ(::chmod(blob.c_str(), 0644), 0);
  ASSERT_EQ(::truncate(blob.c_str(), kManifestBytesMax + 1), 0);
  const auto refused = store_.SweepBlobs(place_.repository, {}, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
}

TEST_F(LayoutSweep, BlobsOfAnUnreadableManifestAreUnknown) {
  const auto published = PublishContent("x", "k-1");
  const Descriptor old = Write("old blob");
  MakeOld(old.digest);
  ASSERT_EQ(::chmod(path("blobs/sha256/" + published->digest.hex()).c_str(), 0644), 0);
  std::ofstream(path("blobs/sha256/" + published->digest.hex())) << "damaged";
  const auto refused = store_.SweepBlobs(place_.repository, {.min_age = std::chrono::hours(1)}, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  EXPECT_TRUE(Exists(old.digest));
}

TEST_F(LayoutSweep, ADirectoryThatIsNoLayoutStaysUnchanged) {
  ASSERT_TRUE(PublishContent("x", "k-1").ok());
  EXPECT_EQ(store_.SweepBlobs("team", {}, {})->blobs, 0);
  EXPECT_FALSE(*temp_.Open().Exists("store/team/.index.lock"));
  EXPECT_EQ(store_.SweepBlobs("nothing", {}, {})->blobs, 0);
}

TEST_F(LayoutTest, ReadingCreatesNothing) {
  EXPECT_FALSE(*store_.HasBlob("team/llama", DigestOf("x"), {}));
  EXPECT_FALSE(store_.ResolveTag("team/llama", "k-1", {}).ok());
  EXPECT_FALSE(*temp_.Open().Exists("store"));
}

TEST_F(LayoutTest, RejectsRepositoryInsideAnother) {
  EXPECT_TRUE(absl::IsInvalidArgument(store_.StartBlob("team/blobs/sha256", {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_.HasBlob("blobs", DigestOf("x"), {}).status()));
}

TEST_F(LayoutTest, RemovesOnlyUploadsOfDeadWriters) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto upload = store_.StartBlob("team/llama", {});
    (*upload)->Write("half").IgnoreError();
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(UploadsLeft(), 1);
  const auto living = store_.StartBlob("team/llama", {});
  ASSERT_TRUE(living.ok()) << living.status();
  EXPECT_EQ(UploadsLeft(), 1);
  const auto second = store_.StartBlob("team/llama", {});
  EXPECT_EQ(UploadsLeft(), 2);
  EXPECT_TRUE((*living)->Write("whole").ok());
  EXPECT_TRUE((*living)->Commit().ok());
  EXPECT_TRUE((*second)->Commit().ok());
  EXPECT_EQ(UploadsLeft(), 0);
}

TEST_F(LayoutTest, KilledPublisherLeavesNoPartialBundle) {
  for (int round = 0; round < 15; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0;; ++i) {
        PublishContent(fmt::format("{} {}", round, i), fmt::format("k-{}", i % 3))
            .status()
            .IgnoreError();
      }
    }
    // Kill it at an arbitrary moment.
    std::this_thread::sleep_for(std::chrono::milliseconds(7 * round));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    for (const std::string tag : {"k-0", "k-1", "k-2"}) {
      const auto digest = store_.ResolveTag("team/llama", tag, {});
      if (absl::IsNotFound(digest.status())) {
        continue;
      }
      ASSERT_TRUE(digest.ok()) << digest.status();
      const auto bundle = ReadBundle(place_, *digest, {});
      ASSERT_TRUE(bundle.ok()) << bundle.status();
      EXPECT_TRUE(Verify(place_, *bundle, {}, {}).ok());
    }
  }
  ASSERT_TRUE(PublishContent("after all", "k-0").ok());
  EXPECT_EQ(UploadsLeft(), 0);
}

TEST_F(LayoutTest, FullDiskIsResourceExhaustedAndLeavesNothing) {
  ASSERT_TRUE(PublishContent("x", "k-1").ok());
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 20'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto published = PublishContent(Noise(100'000, 1), "k-1");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(published.status())) << published.status();
  EXPECT_EQ(UploadsLeft(), 0);
  EXPECT_TRUE(ReadBundle(place_, *store_.ResolveTag("team/llama", "k-1", {}), {}).ok());
}

TEST_F(LayoutTest, DamageOnTheDiskIsDataLoss) {
  const auto published = PublishContent(Noise(10'000, 2), "k-1");
  ASSERT_TRUE(published.ok());
  const auto bundle = ReadBundle(place_, published->digest, {});
  ASSERT_TRUE(bundle.ok());
  const auto damage = [&](const Digest& digest, const std::string& bytes) {
    const fs::Dir dir = *temp_.Open().OpenDir("store/team/llama/blobs/sha256");
    EXPECT_TRUE(fs::WriteFileAtomic(dir, digest.hex(), bytes, 0644).ok());
  };
  for (const std::string& bytes : {std::string(), Noise(100, 3), Noise(10'600, 4)}) {
    damage(bundle->manifest.layers[0].digest, bytes);
    EXPECT_TRUE(absl::IsDataLoss(Verify(place_, *bundle, {}, {})));
    const TempDir staging;
    const fs::Dir dir = staging.Open();
    EXPECT_TRUE(absl::IsDataLoss(Extract(place_, {.bundle = *bundle, .staging = dir}, {})));
  }
  damage(bundle->manifest.config.digest, "{}");
  EXPECT_TRUE(absl::IsDataLoss(ReadBundle(place_, published->digest, {}).status()));
  damage(published->digest, "{}");
  EXPECT_TRUE(absl::IsDataLoss(ReadBundle(place_, published->digest, {}).status()));
}

// Other tools skip a blob whose name exists, so that a damaged one is never replaced.
TEST_F(LayoutTest, PublishingAgainReplacesDamagedBlob) {
  const std::string content = Noise(10'000, 5);
  const auto published = PublishContent(content, "k-1");
  ASSERT_TRUE(published.ok()) << published.status();
  const auto bundle = ReadBundle(place_, published->digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const fs::Dir blobs = *temp_.Open().OpenDir("store/team/llama/blobs/sha256");
  for (const Digest& digest :
       {published->digest, bundle->manifest.config.digest, bundle->manifest.layers[0].digest}) {
    const std::string good = *fs::ReadFile(blobs, digest.hex(), 1 << 20);
    std::string flipped = good;
    flipped[good.size() / 2] ^= 1;
    for (const std::string& bad : {std::string(), good.substr(0, good.size() / 2), flipped}) {
      ASSERT_TRUE(fs::WriteFileAtomic(blobs, digest.hex(), bad, 0444).ok());
      const auto again = PublishContent(content, "k-1");
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(again->digest, published->digest);
      const auto read = ReadBundle(place_, published->digest, {});
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(Verify(place_, *read, {}, {}).ok()) << bad.size();
    }
  }
}

TEST_F(LayoutTest, DoesNotReuseTruncatedLayer) {
  TestTree tree = {{"a", {.content = Noise(10'000, 6)}}};
  const auto older = Publish(place_, FilesOf(tree), SampleFacts(), {.tag = "k-1"}, {});
  ASSERT_TRUE(older.ok()) << older.status();
  const auto base = ReadBundle(place_, older->digest, {});
  ASSERT_TRUE(base.ok()) << base.status();
  const Digest& layer = base->manifest.layers[0].digest;
  const fs::Dir blobs = *temp_.Open().OpenDir("store/team/llama/blobs/sha256");
  const std::string good = *fs::ReadFile(blobs, layer.hex(), 1 << 20);
  tree["b"] = {.content = "new"};
  for (const std::string& bad : {std::string(), good.substr(0, good.size() - 1)}) {
    ASSERT_TRUE(fs::WriteFileAtomic(blobs, layer.hex(), bad, 0444).ok());
    const auto newer =
        Publish(place_, FilesOf(tree), SampleFacts(), {.tag = "k-1", .pack = {.base = &*base}}, {});
    ASSERT_TRUE(newer.ok()) << newer.status();
    const auto read = ReadBundle(place_, newer->digest, {});
    ASSERT_TRUE(read.ok()) << read.status();
    const absl::Status whole = Verify(place_, *read, {}, {});
    EXPECT_TRUE(whole.ok()) << bad.size() << whole;
  }
}

TEST_F(LayoutTest, DoesNotOverwriteForeignIndex) {
  ASSERT_TRUE(PublishContent("x", "k-1").ok());
  for (const std::string text : {"", "{}", "[1]", R"({"schemaVersion":1})"}) {
    std::ofstream(path("index.json")) << text;
    EXPECT_FALSE(PublishContent("y", "k-2").ok()) << text;
    EXPECT_FALSE(store_.ResolveTag("team/llama", "k-1", {}).ok()) << text;
    EXPECT_EQ(*fs::ReadFile(temp_.Open(), "store/team/llama/index.json", 100), text);
  }
}

TEST_F(LayoutTest, FindsReferrersWithoutListedType) {
  ASSERT_TRUE(PublishContent("x", "k-1").ok());
  const Digest subject = *store_.ResolveTag("team/llama", "k-1", {});
  const std::string type = "application/vnd.example.note";
  Artifact artifact{.type = type,
                    .config = *WriteSmallBlob(store_, "team/llama", "{}", {}),
                    .layers = {*WriteSmallBlob(store_, "team/llama", "note", {})},
                    .subject = {.media_type = std::string(kManifestType), .digest = subject}};
  artifact.config.media_type = std::string(kEmptyType);
  artifact.layers[0].media_type = "text/plain";
  ASSERT_TRUE(store_.WriteReferrer("team/llama", *WriteArtifact(artifact), {}).ok());
  const std::string written = *fs::ReadFile(temp_.Open(), "store/team/llama/index.json", 10'000);
  for (const std::string& said :
       {type, std::string(kEmptyType), std::string("application/x"), std::string()}) {
    std::string index = written;
    const std::string member = "\"artifactType\":\"" + type + "\",";
    ASSERT_NE(index.find(member), std::string::npos) << index;
    index.replace(index.find(member), member.size(),
                  said.empty() ? "" : "\"artifactType\":\"" + said + "\",");
    std::ofstream(path("index.json")) << index;
    const auto found = store_.Referrers("team/llama", subject, type, {});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->size(), said == "application/x" ? 0U : 1U) << said;
    EXPECT_TRUE(store_.Referrers("team/llama", DigestOf("another"), type, {})->empty());
  }
}

IndexItem Item(const std::string& name, const std::string& tag) {
  return {.manifest = {.media_type = std::string(kManifestType), .digest = DigestOf(name)},
          .tag = tag};
}

std::string Tags(const std::vector<IndexItem>& items) {
  std::string text;
  for (const IndexItem& item : items) {
    text += fmt::format("{}:{} ", item.manifest.digest.hex().substr(0, 4), item.tag);
  }
  return text;
}

TEST(Index, TagMovesToTheLastManifest) {
  std::vector<IndexItem> items = AddToIndex({}, Item("a", "k"));
  items = AddToIndex(items, Item("b", "k"));
  EXPECT_EQ(FindTag(items, "k"), DigestOf("b"));
  EXPECT_EQ(items.size(), 2U);
  EXPECT_EQ(FindTag(items, ""), std::nullopt);
}

TEST(Index, AddingAgainChangesNothing) {
  const std::vector<IndexItem> once = AddToIndex({}, Item("a", "k"));
  EXPECT_EQ(Tags(AddToIndex(once, Item("a", "k"))), Tags(once));
  EXPECT_EQ(Tags(AddToIndex(once, Item("a", ""))), Tags(once));
}

TEST(Index, OneManifestMayHaveSeveralTags) {
  const auto items = AddToIndex(AddToIndex({}, Item("a", "one")), Item("a", "two"));
  EXPECT_EQ(FindTag(items, "one"), DigestOf("a"));
  EXPECT_EQ(FindTag(items, "two"), DigestOf("a"));
}

TEST(Index, DropsOldestUntaggedItems) {
  std::vector<IndexItem> items = AddToIndex({}, Item("tagged", "keep"), 3);
  for (const std::string name : {"a", "b", "c", "d"}) {
    items = AddToIndex(items, Item(name, ""), 3);
  }
  EXPECT_EQ(items.size(), 3U);
  EXPECT_EQ(FindTag(items, "keep"), DigestOf("tagged"));
  EXPECT_EQ(items.back().manifest.digest, DigestOf("d"));
}

TEST(Index, ManySignaturesDoNotDisplaceBundles) {
  std::vector<IndexItem> items = AddToIndex({}, Item("bundle", ""), 3);
  for (const std::string name : {"a", "b", "c", "d"}) {
    IndexItem signature = Item(name, "");
    signature.artifact_type = "application/vnd.example.note";
    items = AddToIndex(items, signature, 3);
  }
  EXPECT_EQ(items.size(), 4U);
  EXPECT_EQ(items.front().manifest.digest, DigestOf("bundle"));
  EXPECT_EQ(items[1].manifest.digest, DigestOf("b"));
  const auto read = ParseIndex(*WriteIndex(items));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->front().artifact_type, kArtifactType);
  EXPECT_EQ(read->back().artifact_type, "application/vnd.example.note");
}

}  // namespace
}  // namespace cachewarm::bundle

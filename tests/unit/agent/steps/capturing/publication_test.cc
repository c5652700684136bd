// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/capturing/publication.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "lib/bundle/signature/envelope.h"
#include "lib/bundle/signature/signature.h"
#include "lib/bundle/transfer.h"
#include "tests/fakes/noise.h"
#include "tests/unit/agent/steps/workbench.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::agent {
namespace {

class PublishTest : public ::testing::Test, protected Workbench {
 protected:
  PublishTest() : tree_(*fs::Dir::Open(scratch_.path())) {
    scratch_.Write(kIndexFile, "index");
    scratch_.Write(kObjectFile, SharedObject("code"));
    scratch_.Write(kLockFile, "");
  }

  PublishJob Job() {
    return {.store = store_,
            .tree = tree_,
            .table = caches::CacheTable::AllPresets(),
            .node = node_,
            .request = Request(),
            .ns = kMount.ns,
            .name = kMount.name,
            .used = {.all = true}};
  }
  absl::StatusOr<Published> RunPublish() { return PublishTree(Job(), {}); }

  Scratch scratch_;
  fs::Dir tree_;
  const std::string repository_ = "team/llama";
};

TEST_F(PublishTest, WritesBundleWithFacts) {
  const auto published = RunPublish();
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_TRUE(published->native);
  EXPECT_EQ(published->publication.files, 2);
  const auto bundle = bundle::ReadBundle({store_, repository_}, published->publication.digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const bundle::Facts& facts = bundle->config.facts;
  EXPECT_EQ(facts.key, Request().key);
  EXPECT_EQ(facts.factors.at("image"), "llama:1");
  EXPECT_EQ(facts.factors.at("cpuClass"), node_.cpu_class);
  EXPECT_TRUE(facts.requires_cpu_class);
}

TEST_F(PublishTest, ConfigHasTheKeyFactorsOfTheEngine) {
  PublishJob job = Job();
  job.engine_factors = {{"env.VLLM_USE_V1", "0123456789abcdef"}, {"salt", "01234567"}};
  const auto published = PublishTree(job, {});
  ASSERT_TRUE(published.ok()) << published.status();
  const auto bundle = bundle::ReadBundle({store_, repository_}, published->publication.digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ(bundle->config.facts.engine_factors, job.engine_factors);
}

TEST_F(PublishTest, BundleOfAGroupHasNoAutotuneResults) {
  scratch_.Write("inductor/ab/00.best_config", "{}");
  scratch_.Write("sglang/flashinfer/autotune/0.7.0/rank0.json", "{}");
  PublishJob job = Job();
  EXPECT_EQ(PublishTree(job, {})->publication.files, 4);
  job.request.grouped = true;
  const auto published = PublishTree(job, {});
  ASSERT_TRUE(published.ok()) << published.status();
  const auto bundle = bundle::ReadBundle({store_, repository_}, published->publication.digest, {});
  ASSERT_EQ(bundle->config.entries.size(), 2U);
  EXPECT_EQ(bundle->config.entries[0].path, kObjectFile);
  EXPECT_EQ(bundle->config.entries[1].path, kIndexFile);
}

TEST_F(PublishTest, SignsBundleOnce) {
  PublishJob job = Job();
  const Scratch keys_folder;
  keys_folder.Write("key.pem", bundle::kSigner);
  job.private_key_file = keys_folder.path() + "/key.pem";
  const auto keys = *bundle::PublicKey::Parse(bundle::kSignerPublic);
  for (int i = 0; i < 2; ++i) {
    const auto published = PublishTree(job, {});
    ASSERT_TRUE(published.ok()) << published.status();
    const Digest& digest = published->publication.digest;
    EXPECT_TRUE(bundle::CheckSignature({store_, repository_}, digest, keys, {})->good);
    EXPECT_EQ(store_.Referrers(repository_, digest, std::string(bundle::kSigstoreType), {})->size(),
              1U);
  }
}

TEST_F(PublishTest, PublishesNothingWithoutSigningKey) {
  PublishJob job = Job();
  job.private_key_file = scratch_.path() + "/none.pem";
  EXPECT_TRUE(absl::IsFailedPrecondition(PublishTree(job, {}).status()));
  EXPECT_FALSE(store_.ResolveTag(repository_, "k-" + Request().key, {}).ok());
}

TEST_F(PublishTest, TagsBundleWithKey) {
  const auto published = RunPublish();
  ASSERT_TRUE(published.ok());
  EXPECT_EQ(*store_.ResolveTag(repository_, "k-" + Request().key, {}),
            published->publication.digest);
}

TEST_F(PublishTest, RepeatedPublishGivesSameDigest) {
  const auto first = RunPublish();
  const auto second = RunPublish();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->publication.digest, second->publication.digest);
}

TEST_F(PublishTest, UsesPreviousBundleOfKeyAsBase) {
  scratch_.Write("triton/LARGE/large.cubin", fakes::Noise(300'000, 1));
  const auto first = RunPublish();
  ASSERT_TRUE(first.ok()) << first.status();
  scratch_.Write("triton/NEW/new.cubin", "new");
  const auto second = RunPublish();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(second->publication.digest, first->publication.digest);
  EXPECT_LT(second->publication.new_bytes, 30'000);
  EXPECT_GT(second->publication.bytes, 300'000);
  const auto bundle = bundle::ReadBundle({store_, repository_}, second->publication.digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ(bundle->manifest.layers.size(), 2U);
  const absl::Status verified = bundle::Verify({store_, repository_}, *bundle, {}, {});
  EXPECT_TRUE(verified.ok()) << verified;
}

TEST_F(PublishTest, UsesOtherBundleOfWarmupAsBase) {
  scratch_.Write("triton/LARGE/large.cubin", fakes::Noise(300'000, 1));
  const auto first = RunPublish();
  ASSERT_TRUE(first.ok()) << first.status();
  PublishJob job = Job();
  job.request.factors.image = "llama:2";
  job.request.key = *fingerprint::KeyOf(job.request.factors);
  const Digest gone = DigestOf("a missing bundle");
  job.older = {gone, first->publication.digest};
  const auto second = PublishTree(job, {});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(second->publication.digest, first->publication.digest);
  EXPECT_LT(second->publication.new_bytes, 30'000);
}

// Two ranks of a group on different nodes, each with its own part of the tree.
class RankTest : public PublishTest {
 protected:
  RankTest() {
    scratch_.Write("triton/RANK0/kernel.cubin", fakes::Noise(9000, 1));
    first_ = RunPublish()->publication.digest;
    node_.driver_version = "another";
    other_.Write("triton/RANK1/kernel.cubin", fakes::Noise(9000, 2));
    other_.Write(kIndexFile, "index");
  }

  PublishJob JobOfRank(const Digest& keep) {
    return {.store = store_,
            .tree = other_tree_,
            .table = caches::CacheTable::AllPresets(),
            .node = node_,
            .request = Keeping(keep),
            .ns = kMount.ns,
            .name = kMount.name,
            .used = {.all = true}};
  }
  api::CaptureRequest Keeping(const Digest& keep) {
    api::CaptureRequest request = Request();
    request.base_digest = keep;
    return request;
  }
  std::set<std::string> PathsOf(const Digest& digest) {
    std::set<std::string> paths;
    const auto bundle = bundle::ReadBundle({store_, repository_}, digest, {});
    EXPECT_TRUE(bundle.ok() && bundle::Verify({store_, repository_}, *bundle, {}, {}).ok());
    for (const bundle::Entry& entry : bundle->config.entries) {
      paths.insert(entry.path);
    }
    return paths;
  }

  Scratch other_;
  fs::Dir other_tree_ = *fs::Dir::Open(other_.path());
  Digest first_;
};

TEST_F(RankTest, AddsFilesToBundleToKeep) {
  const auto second = PublishTree(JobOfRank(first_), {});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(PathsOf(second->publication.digest),
            (std::set<std::string>{kIndexFile, kObjectFile, "triton/RANK0/kernel.cubin",
                                   "triton/RANK1/kernel.cubin"}));
  EXPECT_TRUE(second->native) << "the object of the first rank is in it";
  EXPECT_EQ(*store_.ResolveTag(repository_, "k-" + Request().key, {}), second->publication.digest);
}

TEST_F(RankTest, WithoutNewFilesGivesSameDigest) {
  const Digest both = PublishTree(JobOfRank(first_), {})->publication.digest;
  const auto again = PublishTree(JobOfRank(both), {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->publication.digest, both);
}

TEST_F(RankTest, PublishesNothingWithoutBundleToKeep) {
  const absl::Status status = PublishTree(JobOfRank(DigestOf("gone")), {}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  store_.SetFault([](std::string_view call) {
    return call == "ReadManifest" ? absl::UnavailableError("away") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(PublishTree(JobOfRank(first_), {}).status()));
  EXPECT_EQ(*store_.ResolveTag(repository_, "k-" + Request().key, {}), first_);
}

TEST_F(RankTest, RejectsBundleToKeepOfAnotherKey) {
  PublishJob job = JobOfRank(first_);
  job.request.factors.image = "llama:2";
  job.request.key = *fingerprint::KeyOf(job.request.factors);
  EXPECT_TRUE(absl::IsFailedPrecondition(PublishTree(job, {}).status()));
}

TEST_F(PublishTest, RejectsKeyThatDoesNotMatchFactors) {
  PublishJob job = Job();
  job.request.factors.image = "llama:2";
  EXPECT_EQ(PublishTree(job, {}).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PublishTest, RejectsRequestForOtherKindOfNode) {
  node_.cpu_class = "x86-64-v3/intel-6-85/0123abcd";
  PublishJob job = Job();
  node_.cpu_class = "x86-64-v4/amd-25-17/5c0d9f21";
  const absl::Status status = PublishTree(job, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(std::string(status.message()).find("this node is"), std::string::npos);
}

TEST_F(PublishTest, PublishesOnlyUsedFiles) {
  scratch_.Write(kOutputFile, "def call(): pass");
  scratch_.Write("inductor/fxgraph/zz/fold/entry9", "left by the seed");
  const auto names = [this](const UsedFiles& used) {
    std::set<std::string> paths;
    const auto listing = capture::ListTree(tree_, caches::CacheTable::AllPresets());
    for (const auto& file : FilterUsed(listing->files, caches::CacheTable::AllPresets(), used)) {
      paths.insert(file.path);
    }
    return paths;
  };
  const std::set<std::string> selected = names({.paths = {kIndexFile, kOutputFile}});
  EXPECT_TRUE(selected.contains(kIndexFile));
  EXPECT_TRUE(selected.contains(kOutputFile));
  EXPECT_FALSE(selected.contains("inductor/fxgraph/zz/fold/entry9"));
  EXPECT_EQ(names({.all = true}).size(), 4U) << "events were lost";
}

TEST_F(PublishTest, ReturnsNotFoundWithoutFiles) {
  PublishJob job = Job();
  job.used = {.all = false};
  std::filesystem::remove(scratch_ / kObjectFile);
  EXPECT_EQ(PublishTree(job, {}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(PublishTest, SkipsTruncatedObject) {
  const std::string whole = SharedObject(std::string(10'000, 'x'));
  scratch_.Write(kObjectFile, whole.substr(0, 6000));
  const auto published = RunPublish();
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_EQ(published->truncated.size(), 1U);
  const auto bundle = bundle::ReadBundle({store_, repository_}, published->publication.digest, {});
  for (const bundle::Entry& entry : bundle->config.entries) {
    EXPECT_NE(entry.path, kObjectFile);
  }
}

TEST_F(PublishTest, AbortsWhileFileIsOpenForWriting) {
  const int writer = ::open((scratch_ / kObjectFile).c_str(), O_WRONLY);
  ASSERT_GE(writer, 0);
  EXPECT_TRUE(absl::IsAborted(RunPublish().status()));
  EXPECT_TRUE(absl::IsNotFound(store_.ResolveTag(repository_, "k-" + Request().key, {}).status()));
  ::close(writer);
  EXPECT_TRUE(RunPublish().ok());
}

// A compiler repeatedly writes the same object in place, as g++ does. At any moment, only a
// complete object is published, or nothing.
TEST_F(PublishTest, RaceWithWriterPublishesWholeFilesOrNothing) {
  const std::string whole = SharedObject(std::string(50'000, 'y'));
  std::jthread compiler([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      const int file = ::open((scratch_ / kObjectFile).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      for (size_t at = 0; at < whole.size() && file >= 0; at += 5000) {
        if (::write(file, whole.data() + at, std::min<size_t>(5000, whole.size() - at)) < 0) {
          break;
        }
        std::this_thread::yield();
      }
      ::close(file);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
  });
  int published_count = 0;
  for (int i = 0; i < 80; ++i) {
    const auto published = RunPublish();
    if (!published.ok()) {
      EXPECT_TRUE(absl::IsAborted(published.status())) << published.status();
      continue;
    }
    ++published_count;
    const auto bundle =
        bundle::ReadBundle({store_, repository_}, published->publication.digest, {});
    ASSERT_TRUE(bundle.ok());
    for (const bundle::Entry& entry : bundle->config.entries) {
      if (entry.path == kObjectFile) {
        EXPECT_TRUE(entry.digest == DigestOf(whole) ||
                    entry.digest == DigestOf(SharedObject("code")));
      }
    }
  }
  RecordProperty("published", published_count);
}

TEST_F(PublishTest, StoreErrorIsReturned) {
  store_.SetFault([](std::string_view call) {
    return call == "WriteManifest" ? absl::PermissionDeniedError("denied by policy")
                                   : absl::OkStatus();
  });
  EXPECT_EQ(RunPublish().status().code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace cachewarm::agent

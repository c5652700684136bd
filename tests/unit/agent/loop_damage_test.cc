// SPDX-License-Identifier: Apache-2.0
// Damaged, truncated, unsigned and rejected bundles and trees in the sync loop.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "agent/sync/tree_names.h"
#include "agent/tree/links.h"
#include "agent/tree/root_layout.h"
#include "lib/api/reasons.h"
#include "lib/bundle/signature/signature.h"
#include "tests/unit/agent/loop_fixture.h"
#include "tests/unit/lib/bundle/signature/sample_keys.h"

namespace cachewarm::agent {
namespace {

using std::chrono::seconds;
namespace stdfs = std::filesystem;

TEST_F(LoopTest, RemovesTruncatedFileFromPreviousTree) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  Want({digest});
  ASSERT_TRUE(IterateUntilActive());
  const std::string before = Warmup().generation;
  root_.Write(GenerationPath(before) + "/" + kObjectFile, SharedObject("code").substr(0, 70));
  watcher_.SetEvents(
      before, {{.type = FileEventType::kWritten, .time = clock_.Now(), .path = kObjectFile}});
  renew_ = 1;
  Want({digest});
  loop_->RunIteration();
  ASSERT_NE(Warmup().generation, before);
  clock_.Advance(seconds(2));
  loop_->RunIteration();
  EXPECT_FALSE(root_.Exists(GenerationPath(before) + "/" + kObjectFile))
      << "a container that restarted immediately has mounted this tree";
  EXPECT_TRUE(root_.Exists(GenerationPath(before) + "/" + kIndexFile));
}

TEST_F(LoopTest, DamagedBundleKeepsOldTree) {
  const Digest good = Publish({{kIndexFile, "good"}});
  const Digest bad = Publish({{kIndexFile, "bad"}});
  const auto bundle = bundle::ReadBundle({store_, "team/llama"}, bad, {});
  ASSERT_TRUE(
      store_.Corrupt("team/llama", bundle->manifest.layers.at(0).digest,
                     std::string(static_cast<size_t>(bundle->manifest.layers[0].bytes), 'x')));
  Want({good});
  ASSERT_TRUE(IterateUntilActive());
  Want({bad});
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_EQ(Bundle(0).reason, api::reason::kVerifyFailed);
  EXPECT_EQ(Shown().at(kIndexFile), "good");
}

TEST_F(LoopTest, UnsignedBundleWaitsForSignature) {
  const Digest signed_one = Publish({{kIndexFile, "signed"}});
  const Digest unsigned_one = Publish({{kIndexFile, "not yet"}});
  const bundle::RepositoryRef place{store_, "team/llama"};
  const auto signer = *bundle::PrivateKey::Parse(bundle::kSigner);
  ASSERT_TRUE(*bundle::Sign(place, signed_one, signer, {}));
  root_.Write("keys/signer.pub", bundle::kSignerPublic);
  keys_.public_key_file = root_ / "keys/signer.pub";
  Restart();
  Want({signed_one});
  ASSERT_TRUE(IterateUntilActive());
  Want({unsigned_one});
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_EQ(Bundle(0).reason, api::reason::kSignatureRejected);
  EXPECT_EQ(Shown().at(kIndexFile), "signed");
  Restart();
  Want({unsigned_one});
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_EQ(Bundle(0).reason, api::reason::kSignatureRejected);

  ASSERT_TRUE(*bundle::Sign(place, unsigned_one, signer, {}));
  clock_.Advance(std::chrono::minutes(10));
  ASSERT_TRUE(IterateUntilActive());
  EXPECT_EQ(Shown().at(kIndexFile), "not yet");
}

TEST_F(LoopTest, RejectedBundleIsNotFetchedAfterRestart) {
  node_.gpu_type = "nvidia/h100-80gb-hbm3/sm_90";
  const Digest foreign = Publish({{kIndexFile, "index"}});
  node_.gpu_type = "cpu";
  Restart();
  Want({foreign});
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_EQ(Bundle(0).reason, api::reason::kBundleRejected);
  const std::vector<api::NodeWarmup> before = status_.warmups;
  std::atomic<int> calls = 0;
  store_.SetFault([&](std::string_view) {
    ++calls;
    return absl::OkStatus();
  });
  for (int day = 0; day < 5; ++day) {
    clock_.Advance(std::chrono::hours(24));
    Restart();
    loop_->RunIteration();  // while the spec is unknown
    Want({foreign});
    loop_->RunIteration();
    EXPECT_EQ(status_.warmups, before);
  }
  Want({});
  loop_->RunIteration();
  Want({foreign});
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_GT(calls, 0) << "the failure is forgotten with the bundle in the spec";
}

TEST_F(LoopTest, DamagedTreeIsReplaced) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  Want({digest});
  ASSERT_TRUE(IterateUntilActive());
  const std::string damaged = Warmup().generation;
  root_.Write(GenerationPath(damaged) + "/" + kIndexFile, "INDEX");
  clock_.Advance(seconds(400));
  ASSERT_TRUE(IterateUntil([&] {
    return Bundle(0).state == api::BundleState::kActive && Warmup().generation != damaged;
  })) << Bundle(0).message;
  EXPECT_EQ(Shown().at(kIndexFile), "index");
  EXPECT_EQ(root_.Read(GenerationPath(damaged) + "/" + kIndexFile), "INDEX")
      << "pods may have it mounted";
  EXPECT_NE(Bundle(0).message.find("replaces 1 damaged tree ("), std::string::npos);
  const std::vector<api::NodeWarmup> before = status_.warmups;
  Restart();
  Want({digest});
  loop_->RunIteration();
  EXPECT_EQ(status_.warmups, before) << "a restart does not return to the damaged tree";
}

TEST_F(LoopTest, DamagedTreeIsReplacedByColdTreeWhileStoreIsDown) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  Want({digest});
  ASSERT_TRUE(IterateUntilActive());
  const std::string damaged = Warmup().generation;
  root_.Write(GenerationPath(damaged) + "/" + kIndexFile, "INDEX");
  store_.SetFault([](std::string_view) { return absl::UnavailableError("down"); });
  clock_.Advance(seconds(400));
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_TRUE(IsColdId(Warmup().generation)) << "an empty tree is always correct";
  EXPECT_TRUE(Shown().empty());
}

TEST_F(LoopTest, GivesUpAfterRepeatedlyDamagedTrees) {
  const Digest digest = Publish({{kIndexFile, "index"}});
  Want({digest});
  for (int tree = 0; tree < kTreesMax; ++tree) {
    ASSERT_TRUE(IterateUntilActive());
    root_.Write(GenerationPath(Warmup().generation) + "/" + kIndexFile, "INDEX");
    const std::string damaged = Warmup().generation;
    clock_.Advance(seconds(400));
    ASSERT_TRUE(IterateUntilNotActive(damaged));
  }
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_EQ(Bundle(0).reason, api::reason::kTreeDamaged);
  renew_ = 1;
  Want({digest});
  EXPECT_TRUE(IterateUntilActive()) << "a renewal resets the attempts";
}

TEST_F(LoopTest, InconsistentBundleIsQuarantined) {
  const std::string repository = kMount.ns + "/" + kMount.name;
  auto bundle = bundle::ReadBundle({store_, repository}, Publish({{kIndexFile, "index"}}), {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  bundle->config.entries.at(0).digest = DigestOf("other bytes than the frames hold");
  const auto config =
      bundle::WriteSmallBlob(store_, repository, *bundle::WriteConfig(bundle->config), {});
  ASSERT_TRUE(config.ok()) << config.status();
  bundle->manifest.config.digest = config->digest;
  bundle->manifest.config.bytes = config->bytes;
  const auto inconsistent_bundle =
      store_.WriteManifest(repository, *bundle::WriteManifest(bundle->manifest), "", {});
  ASSERT_TRUE(inconsistent_bundle.ok()) << inconsistent_bundle.status();
  Want({*inconsistent_bundle});
  // The frames are valid, so a fetch may not detect the mismatch; then two scrubbed trees do.
  for (int tree = 0; tree < 2; ++tree) {
    ASSERT_TRUE(IterateUntil([this] {
      return Bundle(0).state == api::BundleState::kActive ||
             Bundle(0).state == api::BundleState::kFailed;
    }));
    const std::string damaged = Warmup().generation;
    clock_.Advance(seconds(400));
    ASSERT_TRUE(IterateUntilNotActive(damaged));
  }
  ASSERT_TRUE(IterateUntilFailed());
  EXPECT_NE(Bundle(0).message.find("quarantined"), std::string::npos) << Bundle(0).message;
  EXPECT_TRUE(IsColdId(Warmup().generation));
  EXPECT_TRUE(Shown().empty());
}

}  // namespace
}  // namespace cachewarm::agent

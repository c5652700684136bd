// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/forwarding_store.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "tests/fakes/memory_store.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using ::testing::ElementsAre;

constexpr char kRepository[] = "team/llama";

// Makes `attempts` attempts for each call, and notes the calls.
class Attempting : public ForwardingStore {
 public:
  explicit Attempting(Store& inner) : ForwardingStore(inner) {}

  std::vector<std::string> calls;
  int attempts = 1;
  absl::Status refusal;

 private:
  absl::Status Call(StoreOperation operation, const std::stop_token& /*stop*/,
                    Attempt attempt) override {
    calls.emplace_back(NameOf(operation));
    absl::Status status = refusal;
    for (int i = 0; i < attempts; ++i) {
      status = attempt().status();
    }
    return status;
  }
};

class ForwardingStoreTest : public ::testing::Test {
 protected:
  MemoryStore inner_;
  Attempting store_{inner_};
  const Descriptor blob_ = *WriteSmallBlob(inner_, kRepository, "0123456789", {});
};

TEST_F(ForwardingStoreTest, EveryMethodIsOneCallWithItsName) {
  const Digest digest = blob_.digest;
  TextSink text(100);
  const std::pair<std::string_view, std::function<void()>> methods[] = {
      {"has_blob", [&] { (void)store_.HasBlob(kRepository, digest, {}); }},
      {"read_blob",
       [&] { (void)store_.ReadBlob(kRepository, {.digest = digest, .bytes = 1}, text, {}); }},
      {"write_blob", [&] { (void)store_.StartBlob(kRepository, {}); }},
      {"mount_blob", [&] { (void)store_.MountBlob(kRepository, "other", digest, {}); }},
      {"read_manifest", [&] { (void)store_.ReadManifest(kRepository, digest, {}); }},
      {"resolve_tag", [&] { (void)store_.ResolveTag(kRepository, "k", {}); }},
      {"write_manifest", [&] { (void)store_.WriteManifest(kRepository, "{}", "k", {}); }},
      {"referrers", [&] { (void)store_.Referrers(kRepository, digest, "type", {}); }},
      {"write_referrer", [&] { (void)store_.WriteReferrer(kRepository, "{}", {}); }},
      {"list_repositories", [&] { (void)store_.ListRepositories({}); }},
      {"list_manifests", [&] { (void)store_.ListManifests(kRepository, {}); }},
      {"check_unchanged",
       [&] { (void)store_.CheckUnchanged(kRepository, {.digest = digest}, {}); }},
      {"delete_manifest",
       [&] { (void)store_.DeleteManifest(kRepository, {.digest = digest}, {}); }},
      {"sweep_blobs", [&] { (void)store_.SweepBlobs(kRepository, {}, {}); }},
      {"ping", [&] { (void)store_.Ping({}); }},
  };
  for (const auto& [name, call] : methods) {
    call();
    EXPECT_THAT(std::exchange(store_.calls, {}), ElementsAre(name));
  }
}

TEST_F(ForwardingStoreTest, OnlyOperationsThatChangeTheStoreAreWrites) {
  std::vector<std::string_view> writes;
  for (int i = 0; i <= static_cast<int>(StoreOperation::kPing); ++i) {
    if (IsWrite(StoreOperation{i})) {
      writes.push_back(NameOf(StoreOperation{i}));
    }
  }
  EXPECT_THAT(writes, ElementsAre("write_blob", "mount_blob", "write_manifest", "write_referrer",
                                  "delete_manifest", "sweep_blobs"));
}

TEST_F(ForwardingStoreTest, TheResultIsThatOfTheLastAttempt) {
  int calls = 0;
  inner_.SetFault([&](std::string_view) {
    return ++calls < 3 ? absl::UnavailableError("down") : absl::OkStatus();
  });
  store_.attempts = 3;
  const auto has_blob = store_.HasBlob(kRepository, blob_.digest, {});
  ASSERT_TRUE(has_blob.ok()) << has_blob.status();
  EXPECT_TRUE(*has_blob);
  EXPECT_EQ(calls, 3);
}

TEST_F(ForwardingStoreTest, WithoutAnAttemptTheCallerGetsTheError) {
  store_.attempts = 0;
  store_.refusal = absl::CancelledError("stopped");
  EXPECT_EQ(store_.HasBlob(kRepository, blob_.digest, {}).status(), store_.refusal);
  EXPECT_EQ(store_.Ping({}), store_.refusal);
}

}  // namespace
}  // namespace cachewarm::bundle

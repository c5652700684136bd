// SPDX-License-Identifier: Apache-2.0
// A real registry that redirects readers of blobs to another host.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/store/open.h"
#include "lib/bundle/transfer.h"
#include "lib/http/client.h"
#include "tests/contract/store/object_store.h"
#include "tests/contract/store/registry_process.h"
#include "tests/contract/store/token_server.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

constexpr char kRepository[] = "team/llama";

enum class Login { kPassword, kToken };

class RegistryThatRedirects : public ::testing::TestWithParam<Login> {
 protected:
  void SetUp() override {
    if (RegistryProcess::Program().empty()) {
      GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
    }
    http::PrepareProcess();
  }

  // Starts registry and object store, and opens a client.
  void Start(ObjectStoreOptions options) {
    options.folder = content_.path();
    objects_ = std::make_unique<ObjectStore>(options);
    RegistrySettings settings{.redirect_url = objects_->url(),
                              .content_directory = content_.path()};
    if (GetParam() == Login::kToken) {
      tokens_ = std::make_unique<TokenServer>();
      settings.token_realm = tokens_->realm();
      settings.token_certificate_file = tokens_->certificate_file();
    } else {
      settings.with_password = true;
    }
    registry_ = std::make_unique<RegistryProcess>(settings);
    store_ =
        *OpenStore({.url = "oci://" + registry_->address(), .auth_file = registry_->auth_file()},
                   SystemClock());
  }

  void ExpectNoCredentialsWereSentThere() {
    const std::vector<RawRequest> asked = objects_->asked();
    EXPECT_FALSE(asked.empty());
    for (const RawRequest& request : asked) {
      EXPECT_EQ(request.headers.Find("Authorization"), std::nullopt) << request.target;
      EXPECT_EQ(request.headers.Find("Host"), objects_->url().substr(sizeof("http://") - 1));
    }
  }

  const TempDir content_;
  std::unique_ptr<ObjectStore> objects_;
  std::unique_ptr<TokenServer> tokens_;
  std::unique_ptr<RegistryProcess> registry_;
  std::unique_ptr<Store> store_;
};

TEST_P(RegistryThatRedirects, IsFollowedWithoutCredentials) {
  Start({});
  const RepositoryRef place{*store_, kRepository};
  const auto published = Publish(place, FilesOf(SampleTree()), SampleFacts(), {.tag = "k-1"}, {});
  ASSERT_TRUE(published.ok()) << published.status();
  const auto bundle = ReadBundle(place, published->digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const absl::Status whole = Verify(place, *bundle, {}, {});
  EXPECT_TRUE(whole.ok()) << whole;
  ExpectNoCredentialsWereSentThere();
}

TEST_P(RegistryThatRedirects, BrokenDownloadIsResumed) {
  constexpr size_t kAtOnce = 400'000;
  Start({.bytes_max = kAtOnce});
  const std::string bytes = Noise(1'000'000, 1);
  const auto blob = WriteSmallBlob(*store_, kRepository, bytes, {});
  ASSERT_TRUE(blob.ok()) << blob.status();
  TextSink text(bytes.size());
  const absl::Status read =
      store_->ReadBlob(kRepository, {.digest = blob->digest, .bytes = blob->bytes}, text, {});
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_TRUE(text.text() == bytes);
  const std::vector<RawRequest> asked = objects_->asked();
  ASSERT_GE(asked.size(), 3U);
  for (size_t i = 1; i < asked.size(); ++i) {
    EXPECT_GT(RangeOf(asked[i])->first, RangeOf(asked[i - 1])->first);
  }
  ExpectNoCredentialsWereSentThere();
}

TEST_P(RegistryThatRedirects, ChallengeOfTargetGetsNoPassword) {
  Start({.asks_password = true});
  const auto blob = WriteSmallBlob(*store_, kRepository, "content", {});
  ASSERT_TRUE(blob.ok()) << blob.status();
  TextSink text(100);
  const absl::Status refused =
      store_->ReadBlob(kRepository, {.digest = blob->digest, .bytes = blob->bytes}, text, {});
  EXPECT_TRUE(absl::IsUnauthenticated(refused)) << refused;
  ExpectNoCredentialsWereSentThere();
}

INSTANTIATE_TEST_SUITE_P(Logins, RegistryThatRedirects,
                         ::testing::Values(Login::kPassword, Login::kToken), [](const auto& login) {
                           return login.param == Login::kToken ? "token" : "password";
                         });

}  // namespace
}  // namespace cachewarm::bundle

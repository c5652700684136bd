// SPDX-License-Identifier: Apache-2.0
// A real registry that requires tokens, and its token server.
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/store/open.h"
#include "lib/bundle/transfer.h"
#include "lib/http/client.h"
#include "tests/contract/store/registry_process.h"
#include "tests/contract/store/token_server.h"
#include "tests/fakes/await.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using ::testing::HasSubstr;

constexpr char kRepository[] = "team/llama";

class RegistryWithTokens : public ::testing::Test {
 protected:
  void SetUp() override {
    if (RegistryProcess::Program().empty()) {
      GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
    }
    http::PrepareProcess();
    tokens_ = std::make_unique<TokenServer>();
    registry_ = std::make_unique<RegistryProcess>(RegistrySettings{
        .token_realm = tokens_->realm(), .token_certificate_file = tokens_->certificate_file()});
  }

  std::unique_ptr<Store> Open(const std::string& auth_file) {
    return *OpenStore({.url = "oci://" + registry_->address(), .auth_file = auth_file},
                      SystemClock());
  }

  static absl::StatusOr<Publication> PublishTo(Store& store) {
    return Publish({store, kRepository}, FilesOf(SampleTree()), SampleFacts(), {.tag = "k-1"}, {});
  }

  std::unique_ptr<TokenServer> tokens_;
  std::unique_ptr<RegistryProcess> registry_;
};

TEST_F(RegistryWithTokens, UsesOneTokenPerRepositoryAndDirection) {
  const auto store = Open(registry_->auth_file());
  ASSERT_TRUE(store->Ping({}).ok()) << store->Ping({});
  const auto published = PublishTo(*store);
  ASSERT_TRUE(published.ok()) << published.status();
  const RepositoryRef from{*store, kRepository};
  const auto bundle = ReadBundle(from, published->digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_TRUE(Verify(from, *bundle, {}, {}).ok());
  const RepositoryRef to{*store, "team/other"};
  const auto copied = CopyBundle(from, to, *bundle, "k-1", {});
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(copied->copied_bytes, 0) << "a token for both repositories lets blobs be mounted";
  EXPECT_TRUE(Verify(to, *bundle, {}, {}).ok());

  std::set<std::vector<std::string>> scopes;
  for (const TokenServer::Question& question : tokens_->asked()) {
    EXPECT_TRUE(scopes.insert(question.scopes).second) << "tokens are cached";
    EXPECT_EQ(question.authorization, "Basic d2FybTpzZWNyZXQ=");
  }
  EXPECT_THAT(scopes, ::testing::IsSubsetOf(std::set<std::vector<std::string>>{
                          {},
                          {"repository:team/llama:pull"},
                          {"repository:team/llama:pull,push"},
                          {"repository:team/other:pull"},
                          {"repository:team/other:pull,push"},
                          {"repository:team/other:pull,push", "repository:team/llama:pull"}}));
}

TEST_F(RegistryWithTokens, AnonymousUserMayReadButNotWrite) {
  const auto published = PublishTo(*Open(registry_->auth_file()));
  ASSERT_TRUE(published.ok()) << published.status();
  const auto anonymous = Open("");
  const RepositoryRef place{*anonymous, kRepository};
  const auto bundle = ReadBundle(place, published->digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_TRUE(Verify(place, *bundle, {}, {}).ok());
  const auto refused = PublishTo(*anonymous);
  EXPECT_TRUE(absl::IsUnauthenticated(refused.status())) << refused.status();
  EXPECT_THAT(Message(refused.status()), HasSubstr("UNAUTHORIZED"));
}

TEST_F(RegistryWithTokens, RejectsWrongPassword) {
  const TempDir folder;
  folder.Write("config.json",
               fmt::format(R"({{"auths":{{"{}":{{"username":"warm","password":"no"}}}}}})",
                           registry_->address()));
  const absl::Status refused = Open(folder / "config.json")->Ping({});
  EXPECT_TRUE(absl::IsUnauthenticated(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("token server: HTTP 401: wrong password"));
}

TEST_F(RegistryWithTokens, RefreshesExpiredToken) {
  const auto store = Open(registry_->auth_file());
  const auto blob = WriteSmallBlob(*store, kRepository, "content", {});
  ASSERT_TRUE(blob.ok()) << blob.status();
  const size_t before = tokens_->asked().size();
  tokens_->SetLifetime(std::chrono::seconds(5) - TokenServer::kLeeway);
  const auto reader = Open(registry_->auth_file());
  const auto ended = [&] {
    const auto has = reader->HasBlob(kRepository, blob->digest, {});
    EXPECT_TRUE(has.value_or(false)) << has.status();
    return HasFailure() || tokens_->asked().size() > before + 1;
  };
  ASSERT_TRUE(fakes::Await(ended, std::chrono::seconds(60)));
}

}  // namespace
}  // namespace cachewarm::bundle

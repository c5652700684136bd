// SPDX-License-Identifier: Apache-2.0
// Behaviour that only registries have.
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/store/open.h"
#include "lib/bundle/transfer.h"
#include "lib/http/client.h"
#include "tests/contract/store/registry_process.h"
#include "tests/contract/store/store_kinds.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

TEST(RealRegistry, MountsBlobs) {
  if (RegistryProcess::Program().empty()) {
    GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
  }
  http::PrepareProcess();
  const StoreUnderTest made = MakeRegistry();
  const auto blob = WriteSmallBlob(*made.store, "team/one", "content", {});
  ASSERT_TRUE(blob.ok()) << blob.status();
  EXPECT_TRUE(made.store->MountBlob("team/one", "team/two", blob->digest, {}).value_or(false));
}

TEST(RegistryWithPassword, RejectsWrongPassword) {
  if (RegistryProcess::Program().empty()) {
    GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
  }
  http::PrepareProcess();
  const RegistryProcess registry({.with_password = true});
  const auto store = OpenStore({.url = "oci://" + registry.address()}, SystemClock());
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE(absl::IsUnauthenticated((*store)->Ping({}))) << (*store)->Ping({});
}

TEST(RegistryThatIsDown, IsUnavailableUntilItReturns) {
  if (RegistryProcess::Program().empty()) {
    GTEST_SKIP() << "CACHEWARM_REGISTRY_BIN is not set";
  }
  http::PrepareProcess();
  RegistryProcess registry;
  const auto store = *OpenStore({.url = "oci://" + registry.address()}, SystemClock());
  const RepositoryRef place{*store, kRepository};
  const auto published = Publish(place, FilesOf(SampleTree()), SampleFacts(), {.tag = "k-1"}, {});
  ASSERT_TRUE(published.ok()) << published.status();
  registry.Kill();
  EXPECT_TRUE(IsRetryable(store->Ping({}))) << store->Ping({});
  EXPECT_TRUE(IsRetryable(ReadBundle(place, published->digest, {}).status()));
  registry.Start();
  const auto bundle = ReadBundle(place, published->digest, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_TRUE(Verify(place, *bundle, {}, {}).ok());
}

}  // namespace
}  // namespace cachewarm::bundle

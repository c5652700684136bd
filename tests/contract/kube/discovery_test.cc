// SPDX-License-Identifier: Apache-2.0
// Installs and removes a kind on either API server.
#include <thread>

#include "lib/kube/discovery/optional_reflector.h"
#include "tests/contract/kube/backend.h"
#include "tests/fakes/await.h"
#include "tests/fakes/fake_api_server.h"

namespace cachewarm::kube {
namespace {

using codec::Json;
using fakes::Await;

Json DefinitionOf(const Resource& resource) {
  const Json schema = {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
  return {{"metadata",
           {{"name", std::string(resource.plural) + "." + std::string(resource.group)},
            {"annotations", {{"api-approved.kubernetes.io", "unapproved, made by a test"}}}}},
          {"spec",
           {{"group", resource.group},
            {"scope", "Namespaced"},
            {"names", {{"plural", resource.plural}, {"kind", resource.kind}}},
            {"versions", Json::array({{{"name", resource.version},
                                       {"served", true},
                                       {"storage", true},
                                       {"schema", {{"openAPIV3Schema", schema}}}}})}}}};
}

class DiscoveryContract : public KubeContract {
 protected:
  void SetUp() override {
    KubeContract::SetUp();
    Install(false);
  }
  void TearDown() override {
    Install(false);
    KubeContract::TearDown();
  }

  void Install(bool installed) {
    if (is_fake()) {
      dynamic_cast<fakes::FakeApiServer&>(client()).Serve(kRayClusters, installed);
    } else if (installed) {
      Do(Create(kCustomResourceDefinitions, DefinitionOf(kRayClusters), {}));
    } else {
      const Json definition = DefinitionOf(kRayClusters);
      client()
          .Do(Delete(kCustomResourceDefinitions, kube::NameOf(definition), {}), {})
          .IgnoreError();
    }
  }

  bool Is(Presence presence) {
    const auto found = LookUp(client(), kRayClusters, true, {});
    return found.ok() && *found == presence;
  }

  fakes::MemoryLog log_;
};
INSTANTIATE_TEST_SUITE_P(Api, DiscoveryContract, testing::ValuesIn(Backends()),
                         [](const auto& each) { return each.param; });

TEST_P(DiscoveryContract, LookUpDistinguishesServedFromAbsent) {
  ASSERT_TRUE(Await([&] { return Is(Presence::kAbsent); }));
  EXPECT_EQ(*LookUp(client(), kDeployments, true, {}), Presence::kServed);
  EXPECT_EQ(*LookUp(client(), {"apps", "v1", "nothings", "Nothing"}, true, {}), Presence::kAbsent);
  EXPECT_EQ(*LookUp(client(), {"nobody.example.com", "v1", "nothings", "Nothing"}, true, {}),
            Presence::kAbsent);
  Install(true);
  EXPECT_TRUE(Await([&] { return Is(Presence::kServed); }));
}

TEST_P(DiscoveryContract, OptionalReflectorFollowsServedKind) {
  ASSERT_TRUE(Await([&] { return Is(Presence::kAbsent); }));
  OptionalReflector optional({client(), SystemClock(), SystemRandom(), log_},
                             {.resource = kRayClusters},
                             {.known = Duration(200), .unknown = Duration(50)});
  std::jthread running([&](std::stop_token stop) { optional.Run(stop); });
  ASSERT_TRUE(Await([&] { return optional.store().HasSynced(); }));
  Install(true);
  ASSERT_TRUE(Await([&] { return Is(Presence::kServed); }));
  Do(Create(kRayClusters, {{"metadata", Named("a")}, {"spec", {{"x", 1}}}}, {}));
  EXPECT_TRUE(Await([&] { return optional.store().Get(NameOf("a")) != nullptr; }));
  Install(false);
  EXPECT_TRUE(Await([&] { return optional.store().size() == 0; }));
}

// A server keeps the changes of a kind from the moment it serves the kind, so a version from before
// has certainly expired. Versions of other kinds expire only with time.
TEST_P(DiscoveryContract, WatchFromVersionBeforeTheKindExpires) {
  Install(true);
  ASSERT_TRUE(Await([&] { return Is(Presence::kServed); }));
  const absl::Status ended = client().Watch(
      kube::Watch(kRayClusters, {.ns = ns_, .resource_version = "1", .timeout_seconds = 10}),
      [](WatchEvent) { return absl::OkStatus(); }, {});
  EXPECT_EQ(ended.code(), absl::StatusCode::kOutOfRange) << ended;
}

}  // namespace
}  // namespace cachewarm::kube

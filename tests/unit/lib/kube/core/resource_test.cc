// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/core/resource.h"

#include <gtest/gtest.h>

#include <set>

namespace cachewarm::kube {
namespace {

TEST(Resource, ApiVersionIsGroupAndVersion) {
  EXPECT_EQ(kPods.ApiVersion(), "v1");
  EXPECT_EQ(kDeployments.ApiVersion(), "apps/v1");
  EXPECT_EQ(kCacheWarmups.ApiVersion(), "cachewarm.io/v1alpha1");
}

TEST(Resource, IsFoundByApiVersionAndKind) {
  EXPECT_EQ(*FindResource("apps/v1", "Deployment"), kDeployments);
  EXPECT_EQ(*FindResource("v1", "Pod"), kPods);
  for (const auto& [api_version, kind] :
       {std::pair("apps/v1", "deployment"), std::pair("apps/v1beta1", "Deployment"),
        std::pair("v1", "Deployment"), std::pair("", ""), std::pair("apps/v1", "Rollout")}) {
    EXPECT_EQ(FindResource(api_version, kind), nullptr) << api_version << kind;
  }
}

TEST(Resource, KnownResourcesAreUnique) {
  std::set<std::string> seen;
  for (const Resource& resource : KnownResources()) {
    EXPECT_EQ(FindResource(resource.ApiVersion(), resource.kind), &resource) << resource.kind;
    EXPECT_TRUE(seen.insert(resource.ApiVersion() + std::string(resource.plural)).second);
  }
}

TEST(Resource, KnowsClusterScopedResources) {
  std::set<std::string_view> cluster_scoped;
  for (const Resource& resource : KnownResources()) {
    if (!resource.namespaced) {
      cluster_scoped.insert(resource.plural);
    }
  }
  EXPECT_EQ(cluster_scoped, (std::set<std::string_view>{
                                "nodes", "namespaces", "nodecaches", "mutatingadmissionpolicies",
                                "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
                                "resourceslices", "customresourcedefinitions"}));
}

}  // namespace
}  // namespace cachewarm::kube

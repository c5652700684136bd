// SPDX-License-Identifier: Apache-2.0
#include "operator/observe/owners.h"

#include <gtest/gtest.h>

#include <set>

#include "fmt/format.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::observe {
namespace {

using codec::Json;
using op::testing::DeploymentObject;
using op::testing::FromYaml;

class OwnersTest : public op::testing::ClusterCacheFixture {
 protected:
  void Put(const kube::Resource& resource, const std::string& name, const std::string& spec) {
    Json object = FromYaml("{metadata: {namespace: default}, spec: " + spec + "}");
    object["apiVersion"] = resource.ApiVersion();
    object["kind"] = resource.kind;
    object["metadata"]["name"] = name;
    object["metadata"]["uid"] = "uid-" + name;
    server.Put(resource, object);
  }

  std::set<std::string> Names(const api::Labels::Texts& labels) {
    std::set<std::string> names;
    for (const kube::Object& owner : FindOwners(cluster, "default", labels)) {
      names.insert(kube::NameOf(*owner).name);
    }
    return names;
  }
};

TEST_F(OwnersTest, EveryKindIsFoundByTheLabelsOfItsTemplate) {
  constexpr const char* kTemplate = "{metadata: {labels: {app: llama, tier: gpu}}}";
  const auto with = [&](const char* path) { return fmt::format(fmt::runtime(path), kTemplate); };
  Put(kube::kDeployments, "deployment", with("{{template: {}}}"));
  Put(kube::kStatefulSets, "set", with("{{template: {}}}"));
  Put(kube::kRollouts, "rollout", with("{{template: {}}}"));
  Put(kube::kJobs, "job", with("{{template: {}}}"));
  Put(kube::kCronJobs, "cron", with("{{jobTemplate: {{spec: {{template: {}}}}}}}"));
  Put(kube::kLeaderWorkerSets, "workers", with("{{leaderWorkerTemplate: {{workerTemplate: {}}}}}"));
  Put(kube::kLeaderWorkerSets, "leaders", with("{{leaderWorkerTemplate: {{leaderTemplate: {}}}}}"));
  StartCache();
  const std::set<std::string> all = {"deployment", "set",     "rollout", "job",
                                     "cron",       "workers", "leaders"};
  EXPECT_EQ(Names({{"app", "llama"}}), all);
  EXPECT_EQ(Names({{"app", "llama"}, {"tier", "gpu"}}), all);
  EXPECT_TRUE(Names({{"app", "llama"}, {"tier", "cpu"}}).empty());
  EXPECT_TRUE(Names({{"app", "llama"}, {"zone", ""}}).empty());
  EXPECT_TRUE(FindOwners(cluster, "elsewhere", {{"app", "llama"}}).empty());
}

TEST_F(OwnersTest, ARolloutIsFoundByTheTemplateThatItBorrows) {
  Put(kube::kDeployments, "lender", "{replicas: 0, template: {metadata: {labels: {app: llama}}}}");
  Put(kube::kRollouts, "borrower", "{workloadRef: {kind: Deployment, name: lender}}");
  Put(kube::kRollouts, "lost", "{workloadRef: {kind: Deployment, name: none}}");
  StartCache();
  EXPECT_EQ(Names({{"app", "llama"}}), (std::set<std::string>{"lender", "borrower"}));
}

TEST_F(OwnersTest, AJobThatHasEndedAndABuilderOfOursAreNone) {
  const auto put = [&](const char* name, const char* condition, const char* label) {
    Json job = FromYaml("{apiVersion: batch/v1, kind: Job, spec: {template: {}}}");
    job["metadata"] = {{"name", name}, {"namespace", "default"}, {"uid", name}};
    job["metadata"]["labels"] = {{label, "u"}};
    job["spec"]["template"]["metadata"]["labels"]["app"] = "llama";
    job["status"]["conditions"] = {{{"type", condition}, {"status", "True"}}};
    server.Put(kube::kJobs, job);
  };
  put("failed", "Failed", "x");
  put("complete", "Complete", "x");
  put("suspended", "Suspended", "x");
  put("builder", "Suspended", std::string(api::kBuilderWarmupLabel).c_str());
  StartCache();
  EXPECT_EQ(Names({{"app", "llama"}}), std::set<std::string>{"suspended"});
}

TEST_F(OwnersTest, NoMoreAreLookedAtThanABound) {
  for (size_t i = 0; i <= kOwnersMax; ++i) {
    server.Put(kube::kDeployments, DeploymentObject(fmt::format("d-{}", i)));
  }
  StartCache();
  EXPECT_EQ(Names({{"app", "llama"}}).size(), kOwnersMax);
}

}  // namespace
}  // namespace cachewarm::observe

// SPDX-License-Identifier: Apache-2.0
#include "cli/lint/read_objects.h"

#include "cli/lint/shell_words.h"
#include "gmock/gmock.h"
#include "tests/unit/cli/lint/documents.h"

namespace cachewarm::lint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> FieldsOf(const Input& input) {
  std::vector<std::string> fields;
  for (const PodTemplate& pod : input.templates) {
    for (const Container& container : pod.containers) {
      fields.push_back(pod.Object() + " " + container.field);
    }
  }
  return fields;
}

TEST(AddObject, FindsThePodTemplatesOfEveryKind) {
  EXPECT_THAT(
      FieldsOf(
          InputOf("kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: x}, {name: y}]}\n"
                  "---\nkind: CronJob\nmetadata: {name: b, namespace: n}\n"
                  "spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: x}]}}}}}\n"
                  "---\nkind: LeaderWorkerSet\nmetadata: {name: c}\nspec: {leaderWorkerTemplate: "
                  "{leaderTemplate: {spec: {containers: [{name: x}]}}, "
                  "workerTemplate: {spec: {containers: [{name: x}]}}}}\n"
                  "---\nkind: RayCluster\nmetadata: {name: d}\nspec: {workerGroupSpecs: "
                  "[{groupName: g, template: {spec: {containers: [{name: x}]}}}]}\n"
                  "---\nkind: CacheWarmup\nmetadata: {name: e}\n"
                  "spec: {template: {spec: {containers: [{name: x}]}}}\n"
                  "---\nkind: List\nitems: [{kind: Pod, metadata: {name: f}, "
                  "spec: {containers: [{name: x}]}}]\n")),
      ElementsAre("Pod a spec.containers[0]", "Pod a spec.containers[1]",
                  "CronJob n/b spec.jobTemplate.spec.template.spec.containers[0]",
                  "LeaderWorkerSet c "
                  "spec.leaderWorkerTemplate.leaderTemplate.spec.containers[0]",
                  "LeaderWorkerSet c "
                  "spec.leaderWorkerTemplate.workerTemplate.spec.containers[0]",
                  "RayCluster d spec.workerGroupSpecs[0].template.spec.containers[0]",
                  "CacheWarmup e spec.template.spec.containers[0]", "Pod f spec.containers[0]"));
}

TEST(AddObject, LooksOnlyAtEngineContainersOfATemplate) {
  const Input input = InputOf(
      "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: proxy, image: envoy}, "
      "{name: server, image: 'x:1', resources: {requests: {nvidia.com/mig-1g.10gb: 1}}}]}\n");
  EXPECT_FALSE(input.templates[0].containers[0].engine);
  EXPECT_TRUE(input.templates[0].containers[1].engine);
  EXPECT_THAT(FindingsOf(input), IsEmpty());  // not of envoy, which has no tag
}

TEST(AddObject, ContainerThatRequestsNoAcceleratorIsNoEngine) {
  const Input input = InputOf(
      "kind: Pod\nmetadata: {name: a}\nspec: {containers: ["
      "{name: none, resources: {limits: {nvidia.com/gpu: 0}}}, "
      "{name: one, resources: {limits: {nvidia.com/gpu: 1}}}, "
      "{name: claim, resources: {claims: [{name: gpu}]}}]}\n");
  EXPECT_FALSE(input.templates[0].containers[0].engine);
  EXPECT_TRUE(input.templates[0].containers[1].engine);
  EXPECT_TRUE(input.templates[0].containers[2].engine);
}

TEST(AddObject, ManifestsSkipTemplatesWithoutEngine) {
  const std::string router =
      "kind: Deployment\nmetadata: {name: a}\n"
      "spec: {template: {spec: {containers: [{name: r, image: redis}]}}}\n";
  EXPECT_THAT(InputOf(router, Scope::kManifest).templates, IsEmpty());
  EXPECT_THAT(FindingsOf(InputOf(router)), ElementsAre(HasSubstr("unpinned-image")));
  const std::string cpu =
      "kind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: "
      "{containers: [{name: r, image: my/pytorch-server}]}}}\n";
  EXPECT_THAT(FindingsOf(InputOf(cpu, Scope::kManifest)), ElementsAre(HasSubstr("unpinned-image")));
}

TEST(AddObject, MembersOfUnexpectedTypesReadAsAbsent) {
  const Input input = InputOf(
      "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: 5, image: [a], env: {a: b}, "
      "args: [1, {a: b}], startupProbe: {periodSeconds: '9', failureThreshold: -5}, "
      "volumeMounts: x, resources: []}, 7], volumes: 3, enableServiceLinks: 'no'}\n");
  ASSERT_EQ(input.templates.size(), 1U);
  EXPECT_TRUE(input.templates[0].service_links);
  EXPECT_EQ(input.templates[0].containers[0].startup_probe->Limit(), 0);
}

TEST(AddObject, RejectsDocumentsThatAreNoObjects) {
  Input input;
  const auto added = AddObject(codec::Json{{"image", "x"}}, Scope::kManifest, input);
  EXPECT_THAT(added.status().ToString(), HasSubstr("has no \"kind\""));
}

TEST(ShellWords, SplitsOutsideOfQuotesAndSubstitutions) {
  EXPECT_THAT(
      ShellWords("set -e; A=\"b c\" && vllm serve $(mktemp -d)/m --x 'y z' | tee `date +%s`"),
      ElementsAre("set", "-e", "A=b c", "vllm", "serve", "$(mktemp -d)/m", "--x", "y z", "tee",
                  "`date +%s`"));
  EXPECT_THAT(ShellWords("a \\\n  --b c\\ d"), ElementsAre("a", "--b", "c d"));
  EXPECT_THAT(ShellWords("$(a (b) \"unclosed"), ElementsAre("$(a (b) \"unclosed"));
}

TEST(IsRandom, DependsOnWholeNames) {
  EXPECT_TRUE(IsRandom("/tmp/$RANDOM"));
  EXPECT_TRUE(IsRandom("/tmp/$(uuidgen)"));
  EXPECT_TRUE(IsRandom("$(cat /proc/sys/kernel/random/uuid)"));
  EXPECT_FALSE(IsRandom("/tmp/$RANDOM_SEED"));
  EXPECT_FALSE(IsRandom("$(dateutils)"));
  EXPECT_FALSE(IsRandom("/models/date"));
}

}  // namespace
}  // namespace cachewarm::lint

// SPDX-License-Identifier: Apache-2.0
#include "operator/annotations/next_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/codec/json_path.h"
#include "lib/kube/core/object.h"
#include "operator/annotations/desired_warmup.h"
#include "operator/annotations/retention.h"
#include "operator/annotations/warmup_name.h"

namespace cachewarm::annotations {
namespace {

using codec::Json;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr WallTime kNow{std::chrono::hours(24 * 365 * 56)};

// A workload and an API server that stores one CacheWarmup and executes each NextStep.
class NextStepTest : public testing::Test {
 protected:
  NextStepTest() {
    request_ = {.now = kNow,
                .warmup = "llama",
                .api_version = "apps/v1",
                .kind = "Deployment",
                .ns = "default",
                .ns_uid = "uid-default",
                .name = "llama",
                .uid = "uid-llama"};
  }

  void BecomeJob() {
    request_.api_version = "batch/v1";
    request_.kind = "Job";
  }
  std::string ExpiresAt() const {
    return codec::TextAt(present_, {"metadata", "annotations", api::kExpiresAtAnnotation});
  }
  // Applies the step that the operator takes after the Job was deleted.
  void MarkAsExpiring() {
    const NextStep decision =
        FindRetentionStep({.now = request_.now, .job = request_.name, .present = &present_});
    ASSERT_EQ(decision.step, Step::kPatch);
    present_.merge_patch(decision.object);
    ASSERT_NE(ExpiresAt(), "");
  }

  void Annotate(const std::string& name, const std::string& value) {
    request_.annotations["cachewarm.io/" + name] = value;
  }
  void Strip(const std::string& name) { request_.annotations.erase("cachewarm.io/" + name); }

  NextStep Decide() {
    request_.present = present_.is_null() ? nullptr : &present_;
    return annotations::FindNextStep(request_);
  }

  // Executes and returns one step.
  NextStep TakeStep() {
    NextStep decision = Decide();
    if (decision.step == Step::kCreate) {
      present_ = decision.object;
      present_["metadata"]["uid"] = "uid-warmup";
      present_["metadata"]["resourceVersion"] = "1";
    } else if (decision.step == Step::kApply) {
      // The operator is the only owner of these fields.
      present_["spec"] = decision.object["spec"];
      present_["metadata"].merge_patch(decision.object["metadata"]);
    } else if (decision.step == Step::kPatch) {
      present_.merge_patch(decision.object);
    } else if (decision.step == Step::kDelete) {
      present_ = Json();
    }
    return decision;
  }

  // Runs until there is no step left.
  void Settle() {
    for (int i = 0; i < 5 && TakeStep().step != Step::kNothing; ++i) {
    }
    ASSERT_EQ(Decide().step, Step::kNothing);
  }

  void Pass(Duration time) { request_.now += time; }

  std::string Since() const {
    return codec::TextAt(present_, {"metadata", "annotations", api::kRemovalRequestedAtAnnotation});
  }

  AnnotationRequest request_;
  Json present_;
};

TEST_F(NextStepTest, WorkloadWithoutAnnotationGetsNoWarmup) {
  EXPECT_EQ(Decide().step, Step::kNothing);
  Annotate("warm", "false");
  EXPECT_EQ(Decide().step, Step::kNothing);
  EXPECT_THAT(Decide().problems, IsEmpty());
}

TEST_F(NextStepTest, AnnotatedWorkloadGetsOwnedWarmupWithDefaults) {
  Annotate("warm", "true");
  const NextStep made = TakeStep();
  ASSERT_EQ(made.step, Step::kCreate);
  EXPECT_EQ(made.events[0].reason, api::reason::kWarmupCreated);
  EXPECT_EQ(made.object["spec"],
            Json({{"workloadRef",
                   {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "llama"}}}}));
  const Json& owner = made.object["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["uid"], "uid-llama");
  EXPECT_EQ(owner["controller"], true);
  EXPECT_FALSE(owner.contains("blockOwnerDeletion")) << "needs rights on finalizers";
  EXPECT_EQ(Decide().step, Step::kNothing);
}

TEST_F(NextStepTest, ApplyBoundToNewObjectAddsOverrides) {
  Annotate("warm", "true");
  Annotate("gate", "Never");
  const NextStep made = TakeStep();
  EXPECT_FALSE(made.object["spec"].contains("gate"));
  const NextStep completed = TakeStep();
  ASSERT_EQ(completed.step, Step::kApply);
  EXPECT_EQ(completed.object["metadata"]["uid"], "uid-warmup");
  EXPECT_EQ(completed.object["spec"]["gate"]["mode"], "Never");
  EXPECT_EQ(Decide().step, Step::kNothing);
}

TEST_F(NextStepTest, RemovedOverrideLeavesTheSpec) {
  Annotate("warm", "true");
  Annotate("gate", "Never");
  Settle();
  Strip("gate");
  const NextStep changed = TakeStep();
  ASSERT_EQ(changed.step, Step::kApply);
  EXPECT_FALSE(changed.object["spec"].contains("gate"));
  EXPECT_EQ(Decide().step, Step::kNothing);
}

TEST_F(NextStepTest, UserChangesStayUnlessAnnotationSetsTheField) {
  Annotate("warm", "true");
  Annotate("caches", "triton");
  Settle();
  present_["spec"]["paused"] = true;
  present_["spec"]["caches"].push_back({{"name", "vllm"}});
  present_["spec"]["compile"] = {{"builder", "Auto"}};
  EXPECT_EQ(Decide().step, Step::kNothing);
  present_["spec"]["caches"] = Json::array({{{"name", "jax"}}});
  EXPECT_EQ(Decide().step, Step::kApply);
}

TEST_F(NextStepTest, InvalidAnnotationCreatesAndChangesNothing) {
  Annotate("warm", "true");
  Annotate("gate", "Sometimes");
  Annotate("gates", "Never");
  Annotate("caches", "torchinductr");
  const NextStep refused = Decide();
  EXPECT_EQ(refused.step, Step::kNothing);
  ASSERT_EQ(refused.problems.size(), 3U);
  for (const WorkloadNote& problem : refused.problems) {
    EXPECT_TRUE(problem.is_warning);
    EXPECT_EQ(problem.reason, api::reason::kInvalidAnnotation);
  }
  EXPECT_THAT(refused.problems[2].text,
              HasSubstr("annotation cachewarm.io/caches: \"torchinductr\" is not a cache kind that "
                        "cachewarm knows (known: torchinductor, triton, "));
  Strip("gate");
  Strip("gates");
  Strip("caches");
  Settle();
  const Json good = present_;
  Annotate("gate", "Sometimes");
  EXPECT_EQ(Decide().step, Step::kNothing);
  EXPECT_EQ(Decide().problems.size(), 1U);
  EXPECT_EQ(present_, good);
}

TEST_F(NextStepTest, InvalidWarmAnnotationChangesNothing) {
  Annotate("warm", "true");
  Settle();
  for (const char* value : {"yes", "", "True", "1"}) {
    Annotate("warm", value);
    const NextStep decision = Decide();
    EXPECT_EQ(decision.step, Step::kNothing) << value;
    ASSERT_EQ(decision.problems.size(), 1U) << value;
    EXPECT_THAT(decision.problems[0].text, HasSubstr("true or false"));
  }
}

TEST_F(NextStepTest, WarmupIsDeletedTenMinutesAfterRemoval) {
  Annotate("warm", "true");
  Settle();
  Strip("warm");
  const NextStep marked = TakeStep();
  ASSERT_EQ(marked.step, Step::kPatch);
  EXPECT_EQ(marked.events[0].reason, api::reason::kAnnotationRemoved);
  EXPECT_EQ(marked.object["metadata"]["resourceVersion"], "1") << "bound to the observed version";
  EXPECT_EQ(Since(), FormatTime(kNow));
  Pass(Duration(599'000));
  EXPECT_EQ(Decide().step, Step::kNothing);
  EXPECT_EQ(Decide().requeue_after, Duration(1'000));
  Pass(Duration(1'000));
  const NextStep gone = TakeStep();
  EXPECT_EQ(gone.step, Step::kDelete);
  EXPECT_EQ(gone.events[0].reason, api::reason::kWarmupDeleted);
  EXPECT_EQ(Decide().step, Step::kNothing);
}

TEST_F(NextStepTest, ValueFalseActsLikeRemoval) {
  Annotate("warm", "true");
  Settle();
  Annotate("warm", "false");
  EXPECT_EQ(TakeStep().step, Step::kPatch);
  Pass(kRemovalGrace);
  EXPECT_EQ(TakeStep().step, Step::kDelete);
}

TEST_F(NextStepTest, RestoredAnnotationCancelsRemoval) {
  Annotate("warm", "true");
  Settle();
  Strip("warm");
  TakeStep();
  Pass(Duration(590'000));
  Annotate("warm", "true");
  ASSERT_EQ(TakeStep().step, Step::kPatch);
  EXPECT_EQ(Since(), "");
  EXPECT_EQ(Decide().step, Step::kNothing);
  Strip("warm");
  TakeStep();
  EXPECT_EQ(Since(), FormatTime(request_.now)) << "the ten minutes start again";
}

TEST_F(NextStepTest, InvalidAnnotationDoesNotBlockCancellation) {
  Annotate("warm", "true");
  Settle();
  Strip("warm");
  TakeStep();
  Annotate("warm", "true");
  Annotate("gate", "x");
  EXPECT_EQ(TakeStep().step, Step::kPatch);
  EXPECT_EQ(Since(), "");
}

TEST_F(NextStepTest, InvalidRemovalTimeIsReplaced) {
  for (const char* since : {"soon", "2999-01-01T00:00:00Z"}) {
    present_ = Json();
    Annotate("warm", "true");
    Settle();
    Strip("warm");
    present_["metadata"]["annotations"][std::string(api::kRemovalRequestedAtAnnotation)] = since;
    EXPECT_EQ(TakeStep().step, Step::kPatch) << since;
    EXPECT_EQ(Since(), FormatTime(kNow));
  }
}

TEST_F(NextStepTest, ForeignWarmupIsNeverChanged) {
  present_ = {{"metadata", {{"name", "llama"}, {"uid", "foreign"}}}, {"spec", Json::object()}};
  EXPECT_EQ(Decide().step, Step::kNothing);
  Annotate("warm", "true");
  const NextStep conflict = Decide();
  EXPECT_EQ(conflict.step, Step::kNothing);
  ASSERT_EQ(conflict.problems.size(), 1U);
  EXPECT_EQ(conflict.problems[0].reason, api::reason::kWarmupNameTaken);
  Strip("warm");
  Pass(kRemovalGrace * 2);
  EXPECT_EQ(Decide().step, Step::kNothing);
}

TEST_F(NextStepTest, UserCreatedOwnedWarmupIsNotDeleted) {
  present_ = {{"metadata",
               {{"name", "llama"},
                {"ownerReferences", Json::array({{{"kind", "Deployment"},
                                                  {"name", "llama"},
                                                  {"uid", "uid-llama"},
                                                  {"controller", true}}})}}},
              {"spec", Json::object()}};
  EXPECT_EQ(Decide().step, Step::kNothing);
}

TEST_F(NextStepTest, OrphanIsLeftToTheGarbageCollector) {
  Annotate("warm", "true");
  Settle();
  request_.uid = "uid-new";
  EXPECT_EQ(Decide().step, Step::kNothing);
  EXPECT_THAT(Decide().problems, IsEmpty());
  present_ = Json();
  EXPECT_EQ(Decide().step, Step::kCreate);
}

TEST_F(NextStepTest, WarmupOfAJobIsOwnedByTheNamespace) {
  BecomeJob();
  Annotate("warm", "true");
  const NextStep made = TakeStep();
  ASSERT_EQ(made.step, Step::kCreate);
  EXPECT_EQ(made.object["metadata"]["ownerReferences"], Json::array({{{"apiVersion", "v1"},
                                                                      {"kind", "Namespace"},
                                                                      {"name", "default"},
                                                                      {"uid", "uid-default"},
                                                                      {"controller", true}}}));
  EXPECT_EQ(Decide().step, Step::kNothing);
}

TEST_F(NextStepTest, NextJobOfTheSameNameTakesOverTheWarmup) {
  BecomeJob();
  Annotate("warm", "true");
  Annotate("gate", "Never");
  Settle();
  MarkAsExpiring();
  request_.uid = "uid-next";
  Annotate("gate", "Hold");
  const NextStep kept = TakeStep();
  ASSERT_EQ(kept.step, Step::kPatch);
  EXPECT_EQ(ExpiresAt(), "");
  EXPECT_EQ(kept.object["metadata"]["resourceVersion"], "1") << "bound to the observed version";
  EXPECT_EQ(TakeStep().step, Step::kApply);
  EXPECT_EQ(present_["spec"]["gate"]["mode"], "Hold");
  EXPECT_EQ(present_["metadata"]["uid"], "uid-warmup") << "the cache directory has this uid";
  EXPECT_EQ(Decide().step, Step::kNothing);
}

TEST_F(NextStepTest, InvalidAnnotationOfTheNextJobDoesNotLetItsWarmupExpire) {
  BecomeJob();
  Annotate("warm", "true");
  Settle();
  MarkAsExpiring();
  Annotate("gate", "x");
  EXPECT_EQ(TakeStep().step, Step::kPatch);
  EXPECT_EQ(ExpiresAt(), "");
}

TEST_F(NextStepTest, NextJobWithoutAnnotationEndsTheWarmupAfterTenMinutes) {
  BecomeJob();
  Annotate("warm", "true");
  Settle();
  MarkAsExpiring();
  request_.uid = "uid-next";
  Strip("warm");
  EXPECT_EQ(TakeStep().step, Step::kPatch);
  EXPECT_EQ(Since(), FormatTime(kNow));
  Pass(kRemovalGrace);
  EXPECT_EQ(TakeStep().step, Step::kDelete);
}

TEST_F(NextStepTest, RemovalFromAFinishedJobDeletesItsWarmupToo) {
  BecomeJob();
  Annotate("warm", "true");
  Settle();
  request_.ended = true;
  Strip("warm");
  EXPECT_EQ(TakeStep().step, Step::kPatch);
  Pass(kRemovalGrace);
  EXPECT_EQ(TakeStep().step, Step::kDelete);
}

TEST_F(NextStepTest, WarmupOfAnotherJobIsANameConflict) {
  BecomeJob();
  Annotate("warm", "true");
  Settle();
  request_.name = "ll.ama";
  request_.uid = "uid-other";
  EXPECT_EQ(Decide().step, Step::kNothing);
  ASSERT_EQ(Decide().problems.size(), 1U);
  EXPECT_EQ(Decide().problems[0].reason, api::reason::kWarmupNameTaken);
}

TEST_F(NextStepTest, WarmupOwnedByAJobKeepsItsOwner) {
  BecomeJob();
  Annotate("warm", "true");
  Settle();
  present_["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                                          {"kind", "Job"},
                                                          {"name", "llama"},
                                                          {"uid", "uid-llama"},
                                                          {"controller", true}}});
  Annotate("gate", "Never");
  const NextStep changed = TakeStep();
  ASSERT_EQ(changed.step, Step::kApply);
  const Json& owners = changed.object["metadata"]["ownerReferences"];
  ASSERT_EQ(owners.size(), 1U) << "a second controller would be invalid";
  EXPECT_EQ(owners[0]["uid"], "uid-llama");
}

TEST_F(NextStepTest, TargetedWorkloadGetsNoSecondWarmup) {
  request_.served_by = "mine";
  Annotate("warm", "true");
  EXPECT_EQ(Decide().step, Step::kNothing);
  ASSERT_EQ(Decide().problems.size(), 1U);
  EXPECT_EQ(Decide().problems[0].reason, api::reason::kAlreadyTargeted);
  Strip("warm");
  request_.namespace_opted_in = true;
  request_.accelerator = true;
  EXPECT_EQ(Decide().step, Step::kNothing);
  EXPECT_THAT(Decide().problems, IsEmpty()) << "not requested by annotation";
}

TEST_F(NextStepTest, NamespaceLabelCoversWorkloadsWithAccelerator) {
  request_.namespace_opted_in = true;
  EXPECT_EQ(Decide().step, Step::kNothing);
  request_.accelerator = true;
  EXPECT_EQ(Decide().step, Step::kCreate);
  Annotate("warm", "false");
  EXPECT_EQ(Decide().step, Step::kNothing) << "the workload opts out";
  Strip("warm");
  Annotate("gate", "Never");
  Settle();
  EXPECT_EQ(present_["spec"]["gate"]["mode"], "Never");
  request_.namespace_opted_in = false;
  EXPECT_EQ(TakeStep().step, Step::kPatch);
}

TEST_F(NextStepTest, ChildrenAndEndedWorkloadsGetNoWarmup) {
  Annotate("warm", "true");
  request_.is_child = true;
  EXPECT_EQ(Decide().step, Step::kNothing);
  request_.is_child = false;
  request_.ended = true;
  EXPECT_EQ(Decide().step, Step::kNothing);
  request_.ended = false;
  Settle();
  request_.ended = true;
  Strip("warm");
  EXPECT_EQ(Decide().step, Step::kNothing) << "deleted with its owner";
}

TEST_F(NextStepTest, EqualRequestsGiveEqualBytes) {
  Annotate("warm", "true");
  Annotate("node-selector", "b=2,a=1");
  const Json first = DesiredWarmup(request_, {{"nodeSelector", {{"a", "1"}}}}, "u");
  EXPECT_EQ(first, DesiredWarmup(request_, {{"nodeSelector", {{"a", "1"}}}}, "u"));
  EXPECT_NE(
      first["metadata"]["annotations"],
      DesiredWarmup(request_, {{"nodeSelector", {{"a", "2"}}}}, "u")["metadata"]["annotations"]);
}

TEST(WarmupName, IsADnsLabelOfAtMost45Characters) {
  EXPECT_EQ(WarmupName("llama"), "llama");
  EXPECT_EQ(WarmupName("llama.v1.x"), "llama-v1-x");
  EXPECT_EQ(WarmupName(std::string(45, 'a')), std::string(45, 'a'));
  EXPECT_EQ(WarmupName(std::string(43, 'a') + ".b"), std::string(43, 'a') + "-b");
}

TEST(WarmupName, OfACutNameEndsInAHash) {
  const std::string common = "deepseek-r1-distill-llama-70b-vllm-prod-us-east-1-";
  const std::string blue = WarmupName(common + "blue");
  EXPECT_EQ(blue.size(), 45U);
  EXPECT_TRUE(blue.starts_with(common.substr(0, 36) + "-")) << blue;
  EXPECT_NE(blue, WarmupName(common + "green"));
  EXPECT_EQ(blue, WarmupName(common + "blue"));
  const std::string dotted = WarmupName(std::string(35, 'a') + ".." + std::string(20, 'b'));
  EXPECT_EQ(dotted.size(), 44U) << dotted;
  EXPECT_EQ(dotted[35], '-');
  EXPECT_NE(dotted[36], '-');
}

}  // namespace
}  // namespace cachewarm::annotations

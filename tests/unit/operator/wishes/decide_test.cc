// SPDX-License-Identifier: Apache-2.0
#include "operator/wishes/decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/kube/core/object.h"
#include "operator/wishes/name.h"
#include "operator/wishes/wanted.h"

namespace cachewarm::wishes {
namespace {

using codec::Json;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr WallTime kNow{std::chrono::hours(24 * 365 * 56)};

// A workload and an API server that keeps one CacheWarmup and does what a Verdict says.
class WishTest : public testing::Test {
 protected:
  WishTest() {
    asked_ = {.now = kNow,
              .warmup = "llama",
              .api_version = "apps/v1",
              .kind = "Deployment",
              .ns = "default",
              .name = "llama",
              .uid = "uid-llama"};
  }

  void Annotate(const std::string& name, const std::string& value) {
    asked_.annotations["cachewarm.io/" + name] = value;
  }
  void Strip(const std::string& name) { asked_.annotations.erase("cachewarm.io/" + name); }

  Verdict Look() {
    asked_.present = present_.is_null() ? nullptr : &present_;
    return Decide(asked_);
  }

  // Takes one step; returns it.
  Verdict Act() {
    Verdict verdict = Look();
    if (verdict.step == Step::kCreate) {
      present_ = verdict.object;
      present_["metadata"]["uid"] = "uid-warmup";
      present_["metadata"]["resourceVersion"] = "1";
    } else if (verdict.step == Step::kApply) {
      // As the only owner of its fields.
      present_["spec"] = verdict.object["spec"];
      present_["metadata"].merge_patch(verdict.object["metadata"]);
    } else if (verdict.step == Step::kPatch) {
      present_.merge_patch(verdict.object);
    } else if (verdict.step == Step::kDelete) {
      present_ = Json();
    }
    return verdict;
  }

  // Until nothing is left to do.
  void Settle() {
    for (int i = 0; i < 5 && Act().step != Step::kNothing; ++i) {
    }
    ASSERT_EQ(Look().step, Step::kNothing);
  }

  void Pass(Duration time) { asked_.now += time; }

  std::string Since() const {
    return kube::TextAt(present_, {"metadata", "annotations", api::kUnaskedSinceAnnotation});
  }

  Asked asked_;
  Json present_;
};

TEST_F(WishTest, AWorkloadThatDoesNotAskGetsNothing) {
  EXPECT_EQ(Look().step, Step::kNothing);
  Annotate("warm", "false");
  EXPECT_EQ(Look().step, Step::kNothing);
  EXPECT_THAT(Look().problems, IsEmpty());
}

TEST_F(WishTest, AnAnnotatedWorkloadGetsAWarmupOfItsOwnWithDefaults) {
  Annotate("warm", "true");
  const Verdict made = Act();
  ASSERT_EQ(made.step, Step::kCreate);
  EXPECT_EQ(made.news[0].reason, api::reason::kWarmupMade);
  EXPECT_EQ(made.object["spec"],
            Json({{"workloadRef",
                   {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "llama"}}}}));
  const Json& owner = made.object["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["uid"], "uid-llama");
  EXPECT_EQ(owner["controller"], true);
  EXPECT_FALSE(owner.contains("blockOwnerDeletion")) << "needs rights on finalizers";
  EXPECT_EQ(Look().step, Step::kNothing);
}

TEST_F(WishTest, OverridesFollowByAnApplyBoundToTheNewObject) {
  Annotate("warm", "true");
  Annotate("gate", "Off");
  const Verdict made = Act();
  EXPECT_FALSE(made.object["spec"].contains("gate"));
  const Verdict completed = Act();
  ASSERT_EQ(completed.step, Step::kApply);
  EXPECT_EQ(completed.object["metadata"]["uid"], "uid-warmup");
  EXPECT_EQ(completed.object["spec"]["gate"]["mode"], "Off");
  EXPECT_EQ(Look().step, Step::kNothing);
}

TEST_F(WishTest, AnOverrideThatIsTakenAwayLeavesTheSpec) {
  Annotate("warm", "true");
  Annotate("gate", "Off");
  Settle();
  Strip("gate");
  const Verdict changed = Act();
  ASSERT_EQ(changed.step, Step::kApply);
  EXPECT_FALSE(changed.object["spec"].contains("gate"));
  EXPECT_EQ(Look().step, Step::kNothing);
}

TEST_F(WishTest, WhatUsersChangeStaysUnlessAnAnnotationSaysIt) {
  Annotate("warm", "true");
  Annotate("caches", "triton");
  Settle();
  present_["spec"]["paused"] = true;
  present_["spec"]["caches"].push_back({{"name", "vllm"}});
  present_["spec"]["compile"] = {{"builder", "Auto"}};
  EXPECT_EQ(Look().step, Step::kNothing);
  present_["spec"]["caches"] = Json::array({{{"name", "jax"}}});
  EXPECT_EQ(Look().step, Step::kApply);
}

TEST_F(WishTest, ABadAnnotationMakesNothingAndChangesNothing) {
  Annotate("warm", "true");
  Annotate("gate", "Sometimes");
  Annotate("gates", "Off");
  Annotate("caches", "torchinductr");
  const Verdict refused = Look();
  EXPECT_EQ(refused.step, Step::kNothing);
  ASSERT_EQ(refused.problems.size(), 3U);
  for (const Note& problem : refused.problems) {
    EXPECT_TRUE(problem.is_warning);
    EXPECT_EQ(problem.reason, api::reason::kAnnotationRefused);
  }
  EXPECT_THAT(refused.problems[2].text, HasSubstr("torchinductor"));
  Strip("gate");
  Strip("gates");
  Strip("caches");
  Settle();
  const Json good = present_;
  Annotate("gate", "Sometimes");
  EXPECT_EQ(Look().step, Step::kNothing);
  EXPECT_EQ(Look().problems.size(), 1U);
  EXPECT_EQ(present_, good);
}

TEST_F(WishTest, AnUnclearWishChangesNothing) {
  Annotate("warm", "true");
  Settle();
  for (const char* value : {"yes", "", "True", "1"}) {
    Annotate("warm", value);
    const Verdict verdict = Look();
    EXPECT_EQ(verdict.step, Step::kNothing) << value;
    ASSERT_EQ(verdict.problems.size(), 1U) << value;
    EXPECT_THAT(verdict.problems[0].text, HasSubstr("true or false"));
  }
}

TEST_F(WishTest, RemovalActsAfterTenMinutesAndALeaderKnowsSinceWhen) {
  Annotate("warm", "true");
  Settle();
  Strip("warm");
  const Verdict marked = Act();
  ASSERT_EQ(marked.step, Step::kPatch);
  EXPECT_EQ(marked.news[0].reason, api::reason::kWarmupUnasked);
  EXPECT_EQ(marked.object["metadata"]["resourceVersion"], "1") << "bound to what was seen";
  EXPECT_EQ(Since(), FormatTime(kNow));
  Pass(Duration(599'000));
  EXPECT_EQ(Look().step, Step::kNothing);
  EXPECT_EQ(Look().look_again, Duration(1'000));
  Pass(Duration(1'000));
  const Verdict gone = Act();
  EXPECT_EQ(gone.step, Step::kDelete);
  EXPECT_EQ(gone.news[0].reason, api::reason::kWarmupRemoved);
  EXPECT_EQ(Look().step, Step::kNothing);
}

TEST_F(WishTest, SayingNoActsLikeRemoval) {
  Annotate("warm", "true");
  Settle();
  Annotate("warm", "false");
  EXPECT_EQ(Act().step, Step::kPatch);
  Pass(kGrace);
  EXPECT_EQ(Act().step, Step::kDelete);
}

TEST_F(WishTest, AnAnnotationThatComesBackInTimeEndsTheWait) {
  Annotate("warm", "true");
  Settle();
  Strip("warm");
  Act();
  Pass(Duration(590'000));
  Annotate("warm", "true");
  ASSERT_EQ(Act().step, Step::kPatch);
  EXPECT_EQ(Since(), "");
  EXPECT_EQ(Look().step, Step::kNothing);
  Strip("warm");
  Act();
  EXPECT_EQ(Since(), FormatTime(asked_.now)) << "the ten minutes begin anew";
}

TEST_F(WishTest, AWaitEndsAlsoWhileAnotherAnnotationIsBad) {
  Annotate("warm", "true");
  Settle();
  Strip("warm");
  Act();
  Annotate("warm", "true");
  Annotate("gate", "x");
  EXPECT_EQ(Act().step, Step::kPatch);
  EXPECT_EQ(Since(), "");
}

TEST_F(WishTest, ATimeThatNobodyCanHaveWrittenIsWrittenAnew) {
  for (const char* since : {"soon", "2999-01-01T00:00:00Z"}) {
    present_ = Json();
    Annotate("warm", "true");
    Settle();
    Strip("warm");
    present_["metadata"]["annotations"][std::string(api::kUnaskedSinceAnnotation)] = since;
    EXPECT_EQ(Act().step, Step::kPatch) << since;
    EXPECT_EQ(Since(), FormatTime(kNow));
  }
}

TEST_F(WishTest, AWarmupOfSomebodyElseIsNeverTouched) {
  present_ = {{"metadata", {{"name", "llama"}, {"uid", "theirs"}}}, {"spec", Json::object()}};
  EXPECT_EQ(Look().step, Step::kNothing);
  Annotate("warm", "true");
  const Verdict clash = Look();
  EXPECT_EQ(clash.step, Step::kNothing);
  ASSERT_EQ(clash.problems.size(), 1U);
  EXPECT_EQ(clash.problems[0].reason, api::reason::kWarmupNameTaken);
  Strip("warm");
  Pass(kGrace * 2);
  EXPECT_EQ(Look().step, Step::kNothing);
}

TEST_F(WishTest, AWarmupThatAUserGaveToTheWorkloadIsNotDeleted) {
  present_ = {{"metadata",
               {{"name", "llama"},
                {"ownerReferences", Json::array({{{"kind", "Deployment"},
                                                  {"name", "llama"},
                                                  {"uid", "uid-llama"},
                                                  {"controller", true}}})}}},
              {"spec", Json::object()}};
  EXPECT_EQ(Look().step, Step::kNothing);
}

TEST_F(WishTest, TheWarmupOfAnEarlierWorkloadOfThisNameIsLeftToTheGarbageCollector) {
  Annotate("warm", "true");
  Settle();
  asked_.uid = "uid-new";
  EXPECT_EQ(Look().step, Step::kNothing);
  EXPECT_THAT(Look().problems, IsEmpty());
  present_ = Json();
  EXPECT_EQ(Look().step, Step::kCreate);
}

TEST_F(WishTest, AWorkloadThatAUserWarmsAlreadyGetsNoSecondWarmup) {
  asked_.served_by = "mine";
  Annotate("warm", "true");
  EXPECT_EQ(Look().step, Step::kNothing);
  ASSERT_EQ(Look().problems.size(), 1U);
  EXPECT_EQ(Look().problems[0].reason, api::reason::kAlreadyServed);
  Strip("warm");
  asked_.namespace_asks = true;
  asked_.accelerator = true;
  EXPECT_EQ(Look().step, Step::kNothing);
  EXPECT_THAT(Look().problems, IsEmpty()) << "nobody asked for this one by name";
}

TEST_F(WishTest, ANamespaceAsksForWhateverWantsAnAccelerator) {
  asked_.namespace_asks = true;
  EXPECT_EQ(Look().step, Step::kNothing);
  asked_.accelerator = true;
  EXPECT_EQ(Look().step, Step::kCreate);
  Annotate("warm", "false");
  EXPECT_EQ(Look().step, Step::kNothing) << "the workload opts out";
  Strip("warm");
  Annotate("gate", "Off");
  Settle();
  EXPECT_EQ(present_["spec"]["gate"]["mode"], "Off");
  asked_.namespace_asks = false;
  EXPECT_EQ(Act().step, Step::kPatch);
}

TEST_F(WishTest, PodsWithoutAWorkloadAreSelectedByTheirLabels) {
  asked_ = {.now = kNow,
            .warmup = "train-1",
            .api_version = "v1",
            .kind = "Namespace",
            .ns = "default",
            .name = "default",
            .uid = "uid-ns",
            .selector = {{"app", "train"}},
            .accelerator = true,
            .namespace_asks = true,
            .grace = 2 * kGrace};
  Settle();
  EXPECT_EQ(present_["spec"], Json({{"selector", {{"matchLabels", {{"app", "train"}}}}}}));
  EXPECT_EQ(present_["metadata"]["name"], "train-1");
  EXPECT_EQ(kube::ControllerOf(present_).uid, "uid-ns");
  asked_.namespace_asks = false;
  EXPECT_EQ(Act().look_again, 2 * kGrace);
  Pass(kGrace);
  EXPECT_EQ(Look().look_again, kGrace);
  asked_.grace = kGrace;
  EXPECT_EQ(Act().step, Step::kDelete);
}

TEST_F(WishTest, PartsOfOtherWorkloadsAndWhatIsOverGetNothing) {
  Annotate("warm", "true");
  asked_.is_part = true;
  EXPECT_EQ(Look().step, Step::kNothing);
  asked_.is_part = false;
  asked_.over = true;
  EXPECT_EQ(Look().step, Step::kNothing);
  asked_.over = false;
  Settle();
  asked_.over = true;
  Strip("warm");
  EXPECT_EQ(Look().step, Step::kNothing) << "goes with its owner";
}

TEST_F(WishTest, TheSameWishIsTheSameBytes) {
  Annotate("warm", "true");
  Annotate("node-selector", "b=2,a=1");
  const Json first = Wanted(asked_, {{"nodeSelector", {{"a", "1"}}}}, "u");
  EXPECT_EQ(first, Wanted(asked_, {{"nodeSelector", {{"a", "1"}}}}, "u"));
  EXPECT_NE(first["metadata"]["annotations"],
            Wanted(asked_, {{"nodeSelector", {{"a", "2"}}}}, "u")["metadata"]["annotations"]);
}

TEST(WarmupName, IsADnsLabelOfAtMost45Characters) {
  EXPECT_EQ(WarmupName("llama"), "llama");
  EXPECT_EQ(WarmupName("llama.v1.x"), "llama-v1-x");
  EXPECT_EQ(WarmupName(std::string(63, 'a')), std::string(45, 'a'));
  EXPECT_EQ(WarmupName(std::string(44, 'a') + "-bcd"), std::string(44, 'a'));
  EXPECT_EQ(WarmupName(std::string(43, 'a') + "..b"), std::string(43, 'a'));
}

}  // namespace
}  // namespace cachewarm::wishes

// SPDX-License-Identifier: Apache-2.0
#include "operator/annotations/retention.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lib/api/names.h"
#include "lib/api/reasons.h"
#include "lib/codec/json_path.h"
#include "operator/annotations/desired_warmup.h"

namespace cachewarm::annotations {
namespace {

using codec::Json;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr WallTime kNow{std::chrono::hours(24 * 365 * 56)};
constexpr Duration kDay = std::chrono::hours(24);

Json JobWarmup() {
  const AnnotationRequest job{.now = kNow,
                              .warmup = "train",
                              .api_version = "batch/v1",
                              .kind = "Job",
                              .ns = "default",
                              .ns_uid = "uid-default",
                              .name = "train",
                              .uid = "uid-run-1"};
  Json warmup = DesiredWarmup(job, Json::object(), "uid-warmup");
  warmup["metadata"]["resourceVersion"] = "7";
  return warmup;
}

void Annotate(Json& warmup, std::string_view name, const std::string& value) {
  warmup["metadata"]["annotations"][std::string(name)] = value;
}

Json ExpiringAt(WallTime time) {
  Json warmup = JobWarmup();
  Annotate(warmup, api::kExpiresAtAnnotation, FormatTime(time));
  return warmup;
}

// `count` CacheWarmups of Jobs that expire one, two, ... minutes after `after`.
std::vector<RetainedWarmup> Others(size_t count, WallTime after) {
  std::vector<RetainedWarmup> others;
  for (size_t i = 0; i < count; ++i) {
    others.push_back({.name = fmt::format("other-{}", i),
                      .expires = after + std::chrono::minutes(1 + static_cast<int>(i))});
  }
  return others;
}

NextStep Decide(const Json& warmup, std::vector<RetainedWarmup> others = {}) {
  return FindRetentionStep(
      {.now = kNow, .job = "train", .present = &warmup, .others = std::move(others)});
}

TEST(Retention, WarmupOfADeletedJobExpiresSevenDaysLater) {
  const NextStep marked = Decide(JobWarmup());
  ASSERT_EQ(marked.step, Step::kPatch);
  EXPECT_EQ(marked.object["metadata"]["resourceVersion"], "7") << "bound to the observed version";
  EXPECT_EQ(codec::TextAt(marked.object, {"metadata", "annotations", api::kExpiresAtAnnotation}),
            FormatTime(kNow + 7 * kDay));
  EXPECT_EQ(marked.requeue_after, 7 * kDay);
  EXPECT_THAT(marked.events, IsEmpty());
}

TEST(Retention, NothingIsWrittenUntilExpiry) {
  const NextStep waits = Decide(ExpiringAt(kNow + kDay));
  EXPECT_EQ(waits.step, Step::kNothing);
  EXPECT_EQ(waits.requeue_after, kDay);
}

TEST(Retention, ExpiredWarmupIsDeleted) {
  const NextStep gone = Decide(ExpiringAt(kNow));
  EXPECT_EQ(gone.step, Step::kDelete);
  ASSERT_EQ(gone.events.size(), 1U);
  EXPECT_EQ(gone.events[0].reason, api::reason::kWarmupDeleted);
  EXPECT_THAT(gone.events[0].text, HasSubstr("Job train"));
}

TEST(Retention, UnreadableOrTooLateExpiryIsReplaced) {
  for (const std::string& text : {std::string("soon"), FormatTime(kNow + 8 * kDay)}) {
    Json warmup = JobWarmup();
    Annotate(warmup, api::kExpiresAtAnnotation, text);
    EXPECT_EQ(Decide(warmup).step, Step::kPatch) << text;
  }
}

TEST(Retention, EarlierExpirySetByAUserIsRespected) {
  EXPECT_EQ(Decide(ExpiringAt(kNow + Duration(1'000))).requeue_after, Duration(1'000));
}

TEST(Retention, OldestIsDeletedWhenTheNamespaceHasTooMany) {
  const WallTime expires = kNow + kDay;
  EXPECT_EQ(Decide(ExpiringAt(expires), Others(kRetainedMax - 1, expires)).step, Step::kNothing);
  const NextStep surplus = Decide(ExpiringAt(expires), Others(kRetainedMax, expires));
  EXPECT_EQ(surplus.step, Step::kDelete);
  EXPECT_THAT(surplus.events[0].text, HasSubstr("the maximum"));
  EXPECT_EQ(Decide(ExpiringAt(expires), Others(kRetainedMax, kNow)).step, Step::kNothing)
      << "it is not the oldest";
}

TEST(Retention, ExactlyTheMaximumIsKeptOfEqualTimes) {
  const WallTime expires = kNow + kDay;
  std::vector<RetainedWarmup> earlier_names(kRetainedMax, {.name = "a", .expires = expires});
  EXPECT_EQ(Decide(ExpiringAt(expires), earlier_names).step, Step::kNothing);
  std::vector<RetainedWarmup> later_names(kRetainedMax, {.name = "z", .expires = expires});
  EXPECT_EQ(Decide(ExpiringAt(expires), later_names).step, Step::kDelete);
}

TEST(Retention, UnmarkedWarmupIsMarkedBeforeItIsDeleted) {
  EXPECT_EQ(Decide(JobWarmup(), Others(kRetainedMax, kNow + 8 * kDay)).step, Step::kPatch)
      << "the API server denies the deletion of a CacheWarmup without a time";
}

TEST(Retention, RemovedAnnotationDeletesTenMinutesLaterAlsoWithoutTheJob) {
  Json warmup = JobWarmup();
  Annotate(warmup, api::kRemovalRequestedAtAnnotation, FormatTime(kNow - Duration(540'000)));
  EXPECT_EQ(Decide(warmup).step, Step::kNothing);
  EXPECT_EQ(Decide(warmup).requeue_after, Duration(60'000));
  Annotate(warmup, api::kRemovalRequestedAtAnnotation, FormatTime(kNow - kRemovalGrace));
  EXPECT_EQ(Decide(warmup).step, Step::kDelete);
}

TEST(Retention, RemovalTimeInTheFutureIsIgnored) {
  Json warmup = JobWarmup();
  Annotate(warmup, api::kRemovalRequestedAtAnnotation, FormatTime(kNow + kDay));
  EXPECT_EQ(Decide(warmup).step, Step::kPatch);
}

struct ForeignCase {
  const char* name;
  std::function<void(Json&)> change;
};

class ForeignWarmups : public testing::TestWithParam<ForeignCase> {};

TEST_P(ForeignWarmups, AreNeitherMarkedNorDeleted) {
  for (Json warmup : {JobWarmup(), ExpiringAt(kNow)}) {
    GetParam().change(warmup);
    const NextStep decision = Decide(warmup, Others(kRetainedMax, kNow + kDay));
    EXPECT_EQ(decision.step, Step::kNothing);
    EXPECT_EQ(decision.requeue_after, std::nullopt);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ForeignWarmups,
    testing::Values(
        ForeignCase{"without_owner", [](Json& w) { w["metadata"].erase("ownerReferences"); }},
        ForeignCase{"owned_by_its_job",
                    [](Json& w) {
                      w["metadata"]["ownerReferences"][0]["kind"] = "Job";
                      w["metadata"]["ownerReferences"][0]["name"] = "train";
                    }},
        ForeignCase{"owned_by_another_namespace",
                    [](Json& w) { w["metadata"]["ownerReferences"][0]["name"] = "other"; }},
        ForeignCase{"made_by_a_user",
                    [](Json& w) {
                      w["metadata"]["annotations"].erase(
                          std::string(api::kRequestedSpecAnnotation));
                    }},
        ForeignCase{"of_another_kind",
                    [](Json& w) { w["spec"]["workloadRef"]["kind"] = "Deployment"; }},
        ForeignCase{"of_a_job_with_an_equal_short_name",
                    [](Json& w) { w["spec"]["workloadRef"]["name"] = "tra.in"; }},
        ForeignCase{"in_deletion",
                    [](Json& w) { w["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"; }}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(Retention, MissingWarmupNeedsNoStep) {
  EXPECT_EQ(FindRetentionStep({.now = kNow, .job = "train"}).step, Step::kNothing);
}

}  // namespace
}  // namespace cachewarm::annotations

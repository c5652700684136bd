// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/explained_start.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/codec/json_value.h"

namespace cachewarm::cli {
namespace {

using api::StartResult;
using codec::Json;
using ::testing::HasSubstr;

Json Pod(const std::string& start = "") {
  Json pod = {{"metadata",
               {{"namespace", "team"},
                {"name", "llama-1"},
                {"annotations", {{"cachewarm.io/warmup", "llama"}}}}},
              {"spec", Json::object()}};
  if (!start.empty()) {
    pod["metadata"]["annotations"]["cachewarm.io/start"] = start;
  }
  return pod;
}

TEST(ExplainPod, MissHasItsCause) {
  const auto start = ExplainPod(Pod(R"({"result":"miss","startSeconds":42.5,"savedSeconds":-1.5,)"
                                    R"("cause":"argument --a differs"})"));
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_EQ(start->ns, "team");
  EXPECT_EQ(start->pod, "llama-1");
  EXPECT_EQ(start->warmup, "llama");
  EXPECT_EQ(start->result, "miss");
  EXPECT_EQ(start->start_seconds, 42.5);
  EXPECT_EQ(start->saved_seconds, -1.5);
  EXPECT_THAT(start->text, HasSubstr("Cause: argument --a differs"));
}

TEST(ExplainPod, HitHasNoCause) {
  const auto start = ExplainPod(Pod(R"({"result":"hit"})"));
  EXPECT_EQ(start->text, "The pod found all compiled code and compiled nothing.");
}

TEST(ExplainPod, EveryResultIsDescribed) {
  for (const StartResult result : api::kStartResults) {
    const auto start = ExplainPod(Pod(R"({"result":")" + std::string(api::Name(result)) + R"("})"));
    ASSERT_TRUE(start.ok()) << api::Name(result);
    EXPECT_FALSE(start->text.empty());
    const bool needs_cause = result == StartResult::kMiss || result == StartResult::kPartial ||
                             result == StartResult::kInert || result == StartResult::kHollow;
    EXPECT_EQ(start->text.find("recorded no cause") != std::string::npos, needs_cause)
        << start->text;
  }
}

TEST(ExplainPod, SkippedPodHasItsReason) {
  const auto start = ExplainPod(Pod(R"({"result":"cold","skipReason":"rename that volume"})"));
  EXPECT_THAT(start->text, HasSubstr("Cause: rename that volume"));
}

TEST(ExplainPod, PodThatIsNotCountedIsExplained) {
  EXPECT_THAT(ExplainPod(Pod())->text, HasSubstr("not counted yet"));
  Json held = Pod();
  held["spec"]["schedulingGates"] = {{{"name", "cachewarm.io/wait-for-cache"}}};
  held["metadata"]["annotations"]["cachewarm.io/held-until"] = "2026-11-21T08:00:00Z";
  EXPECT_THAT(ExplainPod(held)->text, HasSubstr("held for its cache until 2026-11-21T08:00:00Z"));
  Json plain = Pod();
  plain["metadata"].erase("annotations");
  EXPECT_THAT(ExplainPod(plain)->text, HasSubstr("The pod is not injected"));
}

TEST(ExplainPod, AnnotationOfAnotherWriterIsRefused) {
  for (const std::string& text :
       {std::string("no JSON"), std::string("[]"), std::string(R"({"result":"warm"})"),
        R"({"result":"miss","cause":")" + std::string(20'000, 'x') + R"("})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ExplainPod(Pod(text)).status()));
  }
}

TEST(ExplainPod, ControlCharactersAreReplaced) {
  const auto start = ExplainPod(Pod(R"({"result":"miss","cause":"a\u001b[31mb"})"));
  EXPECT_THAT(start->text, HasSubstr("a [31mb"));
}

TEST(ExplainLastMiss, IsTheNewestStartThatCompiledInVain) {
  api::CacheWarmup warmup{.ns = "team", .name = "llama"};
  EXPECT_TRUE(absl::IsNotFound(ExplainLastMiss(warmup).status()));
  const auto add = [&](const std::string& pod, StartResult result, const std::string& cause) {
    warmup.status.starts.recent.push_back(
        {.pod_uid = "u", .pod = pod, .result = result, .cause = cause});
  };
  add("a", StartResult::kBuilder, "image differs");
  add("b", StartResult::kUnknown, "");
  EXPECT_TRUE(absl::IsNotFound(ExplainLastMiss(warmup).status()));
  add("c", StartResult::kMiss, "older");
  add("d", StartResult::kInert, "newer");
  add("e", StartResult::kHit, "");
  const auto start = ExplainLastMiss(warmup);
  EXPECT_EQ(start->pod, "d");
  EXPECT_EQ(start->result, "inert");
  EXPECT_THAT(start->text, HasSubstr("Cause: newer"));
}

}  // namespace
}  // namespace cachewarm::cli

// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/api/cache_warmup.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "tests/unit/lib/api/samples.h"

namespace cachewarm::api {
namespace {

using codec::Json;

absl::StatusOr<WarmupStatus> Read(const Json& status) {
  Json object = MinimalWarmup();
  object["status"] = status;
  auto warmup = DecodeCacheWarmup(object);
  if (!warmup.ok()) {
    return warmup.status();
  }
  return warmup->status;
}

TEST(WarmupStatus, FullOneReadsBackAsItWasWritten) {
  const WarmupStatus full = FullWarmupStatus();
  const auto read = Read(EncodeStatus(full));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, full);
}

TEST(WarmupStatus, TextOfTheFullOneReadsBack) {
  const WarmupStatus full = FullWarmupStatus();
  const auto parsed = codec::ParseJson(codec::DumpJson(EncodeStatus(full)));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*Read(*parsed), full);
}

TEST(WarmupStatus, EmptyOneIsAnEmptyObject) {
  EXPECT_EQ(EncodeStatus(WarmupStatus{}), Json::object());
  EXPECT_EQ(*Read(Json::object()), WarmupStatus{});
}

TEST(WarmupStatus, InjectionHasEveryMemberOfThePolicy) {
  WarmupStatus status;
  status.injection = Injection{.labels = {{"app", "llama"}}, .container = "c"};
  EXPECT_EQ(EncodeStatus(status)["injection"], (Json{{"labels", {{"app", "llama"}}},
                                                     {"container", "c"},
                                                     {"env", Json::array()},
                                                     {"gate", false}}));
}

TEST(WarmupStatus, TimesKeepMilliseconds) {
  WarmupStatus status = FullWarmupStatus();
  status.builders[0].elected_time += Duration(7);
  const auto read = Read(EncodeStatus(status));
  EXPECT_EQ(read->builders[0].elected_time, status.builders[0].elected_time);
}

TEST(WarmupStatus, OverlongValuesAreCut) {
  WarmupStatus status = FullWarmupStatus();
  status.builders[0].message = std::string(5000, 'm');
  status.builders[0].reason = std::string(500, 'r');
  status.starts.counted_pod_uids.clear();
  for (int i = 0; i < 300; ++i) {
    status.starts.counted_pod_uids.push_back(std::to_string(i));
  }
  status.starts.recent.resize(80, status.starts.recent[0]);
  status.starts.recent.back().pod = "newest";
  const auto read = Read(EncodeStatus(status));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->builders[0].message.size(), 1024U);
  EXPECT_EQ(read->builders[0].reason.size(), 128U);
  ASSERT_EQ(read->starts.counted_pod_uids.size(), 256U);
  EXPECT_EQ(read->starts.counted_pod_uids.back(), "299");
  ASSERT_EQ(read->starts.recent.size(), 64U);
  EXPECT_EQ(read->starts.recent.back().pod, "newest");
}

TEST(WarmupStatus, ErrorsNameThePath) {
  struct Case {
    const char* pointer;
    Json value;
    std::string message;
  };
  const Case cases[] = {
      {"/bundles/0/key", "abc", "status.bundles[0].key: expected 64 lower-case hex digits"},
      {"/bundles/0/bytes", -1,
       "status.bundles[0].bytes: -1 is not between 0 and 9223372036854775807"},
      {"/bundles/0/compileSeconds", "1", "status.bundles[0].compileSeconds: expected a number"},
      {"/builders/0/state", "Done",
       "status.builders[0].state: expected one of Elected, Capturing, Proving, Captured, Failed"},
      {"/builders/0/electedTime", "now",
       "status.builders[0].electedTime: \"now\" is not an RFC 3339 time such as "
       "2026-01-31T12:00:00Z"},
      {"/starts/counts/hit", -1,
       "status.starts.counts.hit: -1 is not between 0 and 9223372036854775807"},
      {"/starts/recent/0/result", "warm",
       "status.starts.recent[0].result: expected one of builder, cold, hit, partial, miss, inert, "
       "hollow, unknown"},
      {"/injection/env/0/name", "A=B",
       "status.injection.env[0].name: expected the name of an environment variable"},
      {"/summary/hit", 97, "status.summary.hit: expected a string"},
      {"/summary/partial", 2, "status.summary.partial: expected a string"},
  };
  for (const Case& each : cases) {
    Json status = EncodeStatus(FullWarmupStatus());
    status[Json::json_pointer(each.pointer)] = each.value;
    EXPECT_EQ(Read(status).status().message(), each.message);
  }
  Json status = EncodeStatus(FullWarmupStatus());
  status["bundles"][0]["digest"] = "md5:abc";
  EXPECT_THAT(std::string(Read(status).status().message()),
              testing::StartsWith("status.bundles[0].digest: "));
}

}  // namespace
}  // namespace cachewarm::api

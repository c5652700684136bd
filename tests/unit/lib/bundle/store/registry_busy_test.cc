// SPDX-License-Identifier: Apache-2.0
// An overloaded registry: 429, and 503 with Retry-After.
#include <stop_token>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/bundle/utf8.h"
#include "lib/http/text/retry_after.h"
#include "tests/fakes/fake_clock.h"
#include "tests/unit/lib/bundle/store/registry_fixture.h"
#include "tests/unit/lib/bundle/trees.h"

namespace cachewarm::bundle {
namespace {

using http::Headers;
using http::Request;
using http::Response;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kWords[] = R"({"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]})";

class BusyRegistryTest : public RegistryTest {
 protected:
  void AnswerBusy(int status, const Headers& headers) {
    http_->ThenRespond(status, kWords, headers);
  }
};

TEST_F(BusyRegistryTest, RetriesAfterRequestedWait) {
  const struct {
    int status;
    Headers headers;
    std::chrono::milliseconds wait;
  } cases[] = {
      {429, {{"Retry-After", "7"}}, std::chrono::seconds(7)},
      {503, {{"Retry-After", "7"}}, std::chrono::seconds(7)},
      {429, {}, std::chrono::milliseconds(500)},
      {429, {{"Retry-After", "soon"}}, std::chrono::milliseconds(500)},
      {429, {{"Retry-After", "86400"}}, std::chrono::seconds(60)},
      {429,
       {{"Retry-After", "Sat, 21 Nov 2026 15:00:09 GMT"},
        {"Date", "Sat, 21 Nov 2026 15:00:00 GMT"}},
       std::chrono::seconds(9)},
  };
  for (const auto& c : cases) {
    const size_t before = clock_.slept().size();
    AnswerBusy(c.status, c.headers);
    http_->ThenRespond(200, "");
    const auto has = store_->HasBlob(kRepository, DigestOf("x"), {});
    ASSERT_TRUE(has.ok()) << has.status();
    ASSERT_EQ(clock_.slept().size(), before + 1);
    EXPECT_EQ(clock_.slept().back(), c.wait) << c.status;
  }
}

TEST_F(BusyRegistryTest, RetriesEveryIdempotentRequest) {
  const Headers soon = {{"Retry-After", "1"}};
  const PackedSample sample = PackTree({{"a", {.content = "x"}}});
  AnswerBusy(429, soon);
  http_->ThenRespond(200, sample.packed.manifest_text);
  EXPECT_TRUE(store_->ReadManifest(kRepository, sample.packed.digest, {}).ok());
  AnswerBusy(503, soon);
  http_->ThenRespond(201, "");
  EXPECT_TRUE(store_->WriteManifest(kRepository, sample.packed.manifest_text, "k-1", {}).ok());
  AnswerBusy(429, soon);
  http_->Then([](const Request&) { return Partial("blob", 0); });
  EXPECT_TRUE(Read(DigestOf("blob"), 4).ok());
  AnswerBusy(429, soon);
  http_->ThenRespond(202, "", {{"Location", "/upload/1"}}).ThenRespond(201, "");
  auto upload = store_->StartBlob(kRepository, {});
  ASSERT_TRUE((*upload)->Write("blob").ok());
  EXPECT_TRUE((*upload)->Commit().ok());
  EXPECT_THAT(clock_.slept(), ::testing::Each(std::chrono::seconds(1)));
  EXPECT_EQ(clock_.slept().size(), 4U);
}

TEST_F(BusyRegistryTest, PersistentOverloadIsUnavailableWithMessage) {
  http_->Otherwise([](const Request&) {
    return Response{.status = 429, .headers = {{"Retry-After", "2"}}, .body = kWords};
  });
  const absl::Status has = store_->HasBlob(kRepository, DigestOf("x"), {}).status();
  EXPECT_TRUE(absl::IsUnavailable(has)) << has;
  EXPECT_THAT(Message(has), HasSubstr("TOOMANYREQUESTS: slow down"));
  EXPECT_EQ(http_->requests().size(), 4U);
  const absl::Status read = Read(DigestOf("x"), 1);
  EXPECT_TRUE(absl::IsUnavailable(read)) << read;
  EXPECT_THAT(Message(read), HasSubstr("slow down"));
  EXPECT_EQ(http_->requests().size(), 8U);
}

TEST_F(BusyRegistryTest, RetriesBusyTokenServer) {
  const Headers challenge = {{"WWW-Authenticate", "Bearer realm=\"https://auth.test/token\""}};
  http_->ThenRespond(401, "", challenge)
      .ThenRespond(429, "", {{"Retry-After", "3"}})
      .ThenRespond(401, "", challenge)
      .ThenRespond(200, R"({"token":"t"})")
      .ThenRespond(200, "");
  EXPECT_TRUE(*store_->HasBlob(kRepository, DigestOf("x"), {}));
  EXPECT_THAT(clock_.slept(), ElementsAre(std::chrono::seconds(3)));
}

TEST_F(BusyRegistryTest, DoesNotRetry503WithoutRetryAfter) {
  http_->ThenRespond(503, "");
  EXPECT_TRUE(absl::IsUnavailable(store_->HasBlob(kRepository, DigestOf("x"), {}).status()));
  EXPECT_TRUE(clock_.slept().empty());
}

TEST_F(BusyRegistryTest, PingIsNotRetried) {
  http_->ThenRespond(429, kWords, {{"Retry-After", "1"}});
  EXPECT_TRUE(absl::IsUnavailable(store_->Ping({})));
  EXPECT_EQ(http_->requests().size(), 1U);
}

TEST(RegistryStatus, EscapesMessageOfTheRegistry) {
  for (const std::string body :
       {R"({"errors":[{"code":"\u001b[2J","message":"a\nb\u0000c\u009b31m\u00e9"}]})",
        "\x1b[2J\x9b\x7f\xff plain\r\n"}) {
    const absl::Status status = RegistryStatus({.status = 404, .body = body}, "GET x");
    EXPECT_TRUE(absl::IsNotFound(status));
    EXPECT_TRUE(IsPlainUtf8(std::string(status.message()))) << status;
  }
}

TEST(RetryBudget, SpreadsWaitsByAQuarter) {
  const ImpatientClock clock;
  const Random last = [] { return 1.0; };
  RetryBudget budget(clock, last, 3);
  absl::Status busy = absl::UnavailableError("busy");
  http::SetRetryAfter(busy, std::chrono::hours(1));
  EXPECT_TRUE(budget.WaitBeforeRetry(busy, {}).ok());
  EXPECT_THAT(clock.slept(), ElementsAre(std::chrono::seconds(75)));
}

TEST(RetryBudget, ProgressResetsTheCount) {
  const ImpatientClock clock;
  const Random none = [] { return 0.0; };
  RetryBudget budget(clock, none, 2);
  const absl::Status down = absl::UnavailableError("down");
  EXPECT_TRUE(budget.WaitBeforeRetry(down, {}).ok());
  EXPECT_EQ(budget.WaitBeforeRetry(down, {}), down);
  budget.RecordProgress();
  EXPECT_TRUE(budget.WaitBeforeRetry(down, {}).ok());
  EXPECT_EQ(budget.WaitBeforeRetry(down, {}), down);
}

TEST(RetryBudget, StopEndsTheWait) {
  const fakes::FakeClock clock;
  const Random none = [] { return 0.0; };
  RetryBudget budget(clock, none, 4);
  absl::Status busy = absl::UnavailableError("busy");
  http::SetRetryAfter(busy, std::chrono::seconds(60));
  std::stop_source stop;
  absl::Status waited;
  {
    const std::jthread waiter([&] { waited = budget.WaitBeforeRetry(busy, stop.get_token()); });
    ASSERT_TRUE(clock.AwaitWaiters(1));
    stop.request_stop();
  }
  EXPECT_TRUE(absl::IsCancelled(waited)) << waited;
}

}  // namespace
}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client/http_client.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/await.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_http_client.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

constexpr char kExpired[] =
    R"({"kind":"Status","code":410,"reason":"Expired","message":"too old"})";
const Request kGet = Get(kPods, {.ns = "a", .name = "b"});
const Request kWatch = kube::Watch(kPods, {.resource_version = "5"});

class HttpClientTest : public testing::Test {
 protected:
  Client& client() {
    if (client_ == nullptr) {
      options_.config.server = "https://api:6443";
      options_.on_request = [this](const RequestReport& report) { reports_.push_back(report); };
      client_ = MakeHttpClient(
          http_, clock_, [] { return 0.5; }, options_);
    }
    return *client_;
  }
  // Advances time automatically, so that retry delays take no real time.
  [[nodiscard]] std::jthread PassTime() {
    return std::jthread([this](std::stop_token stop) {
      while (!stop.stop_requested()) {
        clock_.Advance(Duration(50));
        std::this_thread::yield();
      }
    });
  }
  absl::StatusOr<Json> Do(const Request& request) {
    const std::jthread time = PassTime();
    return client().Do(request, {});
  }
  absl::StatusOr<Json> DoList(const Request& request, const Client::ItemHandler& on_item) {
    const std::jthread time = PassTime();
    return client().DoList(request, on_item, {});
  }

  fakes::FakeClock clock_;
  fakes::FakeHttpClient http_;
  HttpClientOptions options_;
  std::vector<RequestReport> reports_;
  std::unique_ptr<Client> client_;
};

TEST_F(HttpClientTest, SendsRequestAsBuilt) {
  options_.config.token = "abc";
  http_.ThenRespond(200, R"({"kind":"Pod"})");
  const auto answer = client().Do(
      MergePatch(kPods, {.ns = "a", .name = "b"}, {{"x", 1}}, {.subresource = "status"}), {});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["kind"], "Pod");
  const http::Request seen = http_.requests().at(0);
  EXPECT_EQ(seen.method, http::Method::kPatch);
  EXPECT_EQ(seen.url, "https://api:6443/api/v1/namespaces/a/pods/b/status?fieldManager=cachewarm");
  EXPECT_EQ(seen.headers.Find("Authorization"), "Bearer abc");
  EXPECT_EQ(seen.headers.Find("Content-Type"), "application/merge-patch+json");
  EXPECT_EQ(seen.body, R"({"x":1})");
}

TEST_F(HttpClientTest, SendsNoAuthorizationWithoutToken) {
  http_.ThenRespond(200, "{}");
  EXPECT_TRUE(client().Do(kGet, {}).ok());
  EXPECT_EQ(http_.requests().at(0).headers.Find("Authorization"), std::nullopt);
}

TEST_F(HttpClientTest, TextIsReturnedUnchangedAndLimited) {
  http_.ThenRespond(200, "not JSON\n{");
  const Request log = PodLog({.ns = "a", .name = "b"}, {.container = "c", .limit_bytes = 4096});
  const auto text = client().DoText(log, {});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "not JSON\n{");
  EXPECT_EQ(http_.requests().at(0).url,
            "https://api:6443/api/v1/namespaces/a/pods/b/log?container=c&limitBytes=4096");
  EXPECT_EQ(http_.requests().at(0).body_bytes_max, 4096U);
  EXPECT_EQ(reports_.at(0).resource, "pods/log");
}

TEST_F(HttpClientTest, LogIsNotReadAgainAfterAnError) {
  http_.ThenRespond(503, "kubelet does not answer");
  const Request log = PodLog({.ns = "a", .name = "b"}, {.container = "c", .limit_bytes = 4096});
  EXPECT_TRUE(absl::IsUnavailable(client().DoText(log, {}).status()));
  EXPECT_EQ(http_.requests().size(), 1U);
}

TEST_F(HttpClientTest, ErrorNamesRequestAndKeepsReason) {
  http_.ThenRespond(404, R"({"kind":"Status","code":404,"reason":"NotFound","message":"no b"})");
  const absl::Status status = client().Do(kGet, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(status), "NotFound");
  EXPECT_EQ(HttpCodeOf(status), 404);
  EXPECT_EQ(Message(status), "get /api/v1/namespaces/a/pods/b: no b");
}

TEST_F(HttpClientTest, ReadsErrorWithoutStatusObject) {
  http_.ThenRespond(403, "<html>proxy says no</html>");
  const absl::Status status = client().Do(kGet, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_NE(Message(status).find("proxy says no"), std::string::npos);
}

TEST_F(HttpClientTest, RetriesIdempotentRequests) {
  http_.ThenFail(absl::UnavailableError("reset"))
      .ThenRespond(503, "")
      .ThenFail(absl::DeadlineExceededError("silent"))
      .ThenRespond(200, "{}");
  EXPECT_TRUE(Do(kGet).ok());
  EXPECT_EQ(http_.requests().size(), 4U);
}

TEST_F(HttpClientTest, GivesUpAfterFourAttempts) {
  http_.Otherwise([](const http::Request&) { return absl::UnavailableError("down"); });
  EXPECT_EQ(Do(kGet).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(http_.requests().size(), 4U);
}

TEST_F(HttpClientTest, SendsOtherRequestsOnce) {
  http_.Otherwise([](const http::Request&) { return absl::UnavailableError("down"); });
  EXPECT_FALSE(Do(JsonPatch(kPods, {.ns = "a", .name = "b"}, Json::array(), {})).ok());
  EXPECT_FALSE(Do(Create(kPods, {{"metadata", {{"generateName", "a"}}}}, {})).ok());
  EXPECT_EQ(http_.requests().size(), 2U);
}

TEST_F(HttpClientTest, TooManyRequestsHonorsRetryAfterForEveryVerb) {
  http_.ThenRespond(429, "", {{"Retry-After", "7"}}).ThenRespond(200, "{}");
  const MonoTime began = clock_.Monotonic();
  EXPECT_TRUE(Do(JsonPatch(kPods, {.ns = "a", .name = "b"}, Json::array(), {})).ok());
  EXPECT_GE(clock_.Monotonic() - began, std::chrono::seconds(7));
}

TEST_F(HttpClientTest, LongRetryAfterIsReturnedToCaller) {
  http_.ThenRespond(429, "", {{"Retry-After", "60"}});
  const absl::Status status = Do(kGet).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(http::RetryAfterOf(status), std::chrono::seconds(60));
}

TEST_F(HttpClientTest, DoesNotRetryConflicts) {
  http_.ThenRespond(409, R"({"reason":"Conflict","code":409})");
  EXPECT_EQ(Do(kGet).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(http_.requests().size(), 1U);
}

TEST_F(HttpClientTest, RejectedTokenIsReloadedAndRetriedOnce) {
  TempDir folder;
  options_.config.token_file = folder / "token";
  std::ofstream(folder / "token") << "old";
  client();
  std::ofstream(folder / "token") << "new";
  http_.ThenRespond(401, "").ThenRespond(200, "{}");
  EXPECT_TRUE(client().Do(kGet, {}).ok());
  EXPECT_EQ(http_.requests().at(0).headers.Find("Authorization"), "Bearer old");
  EXPECT_EQ(http_.requests().at(1).headers.Find("Authorization"), "Bearer new");
  http_.ThenRespond(401, "");
  EXPECT_EQ(client().Do(kGet, {}).status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(http_.requests().size(), 3U) << "there is no other token to try";
}

TEST_F(HttpClientTest, NonJsonResponseIsUnavailable) {
  http_.Otherwise([](const http::Request&) {
    return http::Response{.status = 200, .headers = {}, .body = "<html>"};
  });
  EXPECT_EQ(Do(kGet).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(HttpClientTest, ListPassesItemsWithoutManagedFields) {
  http_.ThenRespond(503, "").ThenRespond(
      200, R"({"metadata":{"continue":"c"},"items":[{"metadata":{"name":"a","managedFields":[]}},
               {"metadata":{"name":"b"}}]})");
  std::vector<Json> items;
  const auto page = DoList(List(kPods, {}), [&](Json item) { items.push_back(std::move(item)); });
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(*page, Json::parse(R"({"metadata":{"continue":"c"},"items":[]})"));
  EXPECT_EQ(items,
            (std::vector<Json>{{{"metadata", {{"name", "a"}}}}, {{"metadata", {{"name", "b"}}}}}));
}

// Otherwise one tenant's object would block every list permanently.
TEST_F(HttpClientTest, DeepItemDoesNotBlockOthers) {
  const std::string deep = R"({"metadata":{"name":"deep"},"spec":)" + std::string(200, '[') +
                           std::string(200, ']') + "}";
  http_.ThenRespond(200, R"({"items":[)" + deep + R"(,{"metadata":{"name":"b"}}]})");
  std::vector<std::string> names;
  const auto page =
      DoList(List(kPods, {}), [&](const Json& item) { names.push_back(NameOf(item).name); });
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(names, (std::vector<std::string>{"deep", "b"}));
}

TEST_F(HttpClientTest, DoesNotRetryTruncatedList) {
  http_.ThenRespond(200, R"({"items":[{"a":1},{"b)").ThenRespond(200, R"({"items":[]})");
  int items = 0;
  const absl::Status status = DoList(List(kPods, {}), [&](const Json&) { ++items; }).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(items, 1);
  EXPECT_EQ(http_.requests().size(), 1U) << "the receiver of the items must start over";
}

TEST_F(HttpClientTest, StopsWhileWaitingToRetry) {
  http_.Otherwise([](const http::Request&) { return absl::UnavailableError("down"); });
  std::stop_source stop;
  std::jthread stopper([&] {
    EXPECT_TRUE(clock_.AwaitWaiters(1));
    stop.request_stop();
  });
  EXPECT_TRUE(absl::IsCancelled(client().Do(kGet, stop.get_token()).status()));
}

TEST_F(HttpClientTest, ReportsEveryRequest) {
  http_.ThenFail(absl::UnavailableError("reset")).ThenRespond(404, "{}");
  EXPECT_FALSE(Do(kGet).ok());
  ASSERT_EQ(reports_.size(), 2U);
  EXPECT_EQ(reports_[0].http_code, 0);
  EXPECT_EQ(reports_[1].http_code, 404);
  EXPECT_EQ(reports_[1].verb, "get");
  EXPECT_EQ(reports_[1].resource, "pods");
}

TEST_F(HttpClientTest, WatchPassesEventsAndEndsCleanly) {
  http_.ThenRespond(200, R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})"
                         "\n"
                         R"({"type":"DELETED","object":{"metadata":{"name":"a"}}})"
                         "\n");
  int events = 0;
  EXPECT_TRUE(client()
                  .Watch(kWatch,
                         [&](WatchEvent) {
                           ++events;
                           return absl::OkStatus();
                         },
                         {})
                  .ok());
  EXPECT_EQ(events, 2);
  EXPECT_EQ(reports_.at(0).http_code, 200);
  EXPECT_EQ(reports_.at(0).verb, "watch");
}

TEST_F(HttpClientTest, RecognizesBothFormsOfExpiredVersion) {
  const auto nothing = [](WatchEvent) { return absl::OkStatus(); };
  http_.ThenRespond(410, kExpired);
  EXPECT_EQ(client().Watch(kWatch, nothing, {}).code(), absl::StatusCode::kOutOfRange);
  http_.ThenRespond(200, std::string(R"({"type":"ERROR","object":)") + kExpired + "}\n");
  EXPECT_EQ(client().Watch(kWatch, nothing, {}).code(), absl::StatusCode::kOutOfRange);
}

TEST_F(HttpClientTest, WatchEndingWithinALineIsUnavailable) {
  http_.ThenRespond(200, R"({"type":"ADD)");
  EXPECT_EQ(client().Watch(kWatch, [](WatchEvent) { return absl::OkStatus(); }, {}).code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(HttpClientTest, WatchReloadsRejectedToken) {
  TempDir folder;
  options_.config.token_file = folder / "token";
  std::ofstream(folder / "token") << "old";
  client();
  std::ofstream(folder / "token") << "new";
  http_.ThenRespond(401, "").ThenRespond(200, "");
  EXPECT_TRUE(client().Watch(kWatch, [](WatchEvent) { return absl::OkStatus(); }, {}).ok());
  http_.ThenRespond(401, "");
  EXPECT_EQ(client().Watch(kWatch, [](WatchEvent) { return absl::OkStatus(); }, {}).code(),
            absl::StatusCode::kUnauthenticated);
}

// Over a real connection, events arrive while the watch runs, and a stop ends it.
TEST(HttpClientOverLoopback, WatchDeliversAndStopsAtOnce) {
  fakes::RawServer server([](fakes::RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    const std::string line = R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})";
    connection.Write(fakes::RawChunk(line.substr(0, 20)));
    connection.Write(fakes::RawChunk(line.substr(20) + "\n"));
    connection.BlockUntilStop();
  });
  const auto http = *http::MakeClient({});
  const auto client = MakeHttpClient(*http, SystemClock(), [] { return 0.5; },
                                     {.config = {.server = server.Url("")}});
  std::stop_source stop;
  const absl::Status status = client->Watch(
      kWatch,
      [&](WatchEvent event) {
        EXPECT_EQ(NameOf(*event.object).name, "a");
        stop.request_stop();
        return absl::OkStatus();
      },
      stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

TEST(HttpClientOverLoopback, SilentWatchTimesOut) {
  fakes::RawServer server([](fakes::RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    connection.BlockUntilStop();
  });
  const auto http = *http::MakeClient({});
  const auto client =
      MakeHttpClient(*http, SystemClock(), [] { return 0.5; },
                     {.config = {.server = server.Url("")}, .watch_timeout = Duration(200)});
  EXPECT_EQ(client->Watch(kWatch, [](WatchEvent) { return absl::OkStatus(); }, {}).code(),
            absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace cachewarm::kube

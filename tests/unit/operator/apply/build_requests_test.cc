// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/build_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "fmt/format.h"
#include "lib/http/bounded_client.h"
#include "tests/fakes/await.h"
#include "tests/fakes/memory_log.h"
#include "tests/fakes/raw_server.h"

namespace cachewarm::apply {
namespace {

using ::testing::HasSubstr;

class BuildRequestsTest : public testing::Test {
 protected:
  // A pod that answers its n-th request with `answer`.
  using Answer = std::function<std::string(const std::string& request, int n)>;
  void Serve(Answer answer) {
    server_ = std::make_unique<fakes::RawServer>(
        [this, answer = std::move(answer)](fakes::RawConnection& connection, int) {
          for (std::string request = connection.ReadRequest(); !request.empty();
               request = connection.ReadRequest()) {
            int n = 0;
            {
              std::lock_guard lock(mutex_);
              n = static_cast<int>(received_.size());
              received_.push_back(request);
            }
            connection.Write(answer(request, n));
          }
        });
  }
  api::BuildRequest To(const std::string& path) {
    return {.path = path, .port = server_->port(), .timeout_seconds = 20};
  }
  // Sends and returns the failure; "" if all responses were expected.
  std::string Outcome(std::vector<api::BuildRequest> requests, const std::string& ip = "10.9.8.7") {
    const model::DesiredBuildRequests batch{
        .pod_uid = "p1", .pod_name = "builder", .pod_ip = ip, .requests = std::move(requests)};
    requests_.Update(warmup_, {batch});
    EXPECT_TRUE(fakes::Await([&] { return woken_ > 0; }));
    const auto states = requests_.States("w1");
    EXPECT_EQ(states.size(), 1U);
    return states.empty() || !states[0].ended ? "no end" : states[0].failure;
  }
  std::vector<std::string> received() {
    std::lock_guard lock(mutex_);
    return received_;
  }

  std::mutex mutex_;
  std::vector<std::string> received_;
  std::unique_ptr<fakes::RawServer> server_;
  const api::CacheWarmup warmup_{.ns = "team", .name = "llama", .uid = "w1"};
  fakes::MemoryLog log_;
  std::atomic<int> woken_ = 0;
  BuildRequests requests_{{.clock = SystemClock(),
                           .log = log_,
                           .connect = [](const std::string&) { return Redirecting(); },
                           .wake =
                               [this](const std::string& warmup) {
                                 EXPECT_EQ(warmup, "team/llama");
                                 ++woken_;
                               }}};

  // Connects pod addresses to the test's server on 127.0.0.1.
  class Loopback final : public http::Client {
   public:
    explicit Loopback(std::unique_ptr<http::Client> real) : real_(std::move(real)) {}
    absl::StatusOr<http::Response> Send(const http::Request& request,
                                        std::stop_token stop) override {
      http::Request local = request;
      EXPECT_TRUE(local.url.starts_with("http://10.9.8.7:")) << local.url;
      local.url.replace(0, std::string("http://10.9.8.7").size(), "http://127.0.0.1");
      return real_->Send(local, std::move(stop));
    }
    absl::StatusOr<http::Response> Stream(const http::Request&, http::BodySink&,
                                          std::stop_token) override {
      return absl::UnimplementedError("");
    }

   private:
    std::unique_ptr<http::Client> real_;
  };
  static absl::StatusOr<std::unique_ptr<http::Client>> Redirecting() {
    auto real = http::MakeBoundedClient({.address = "127.0.0.1"});
    return std::make_unique<Loopback>(*std::move(real));
  }
};

TEST_F(BuildRequestsTest, RequestsAreSentInOrderAsWritten) {
  Serve([](const std::string&, int) { return fakes::RawResponse(204, ""); });
  api::BuildRequest post = To("/v1/completions?a=b");
  post.method = "POST";
  post.headers = {{.name = "Content-Type", .value = "application/json"}};
  post.body = R"({"prompt":"x"})";
  post.repeat = 2;
  EXPECT_EQ(Outcome({To("/first"), post}), "");
  const auto requests = received();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_TRUE(requests[0].starts_with("GET /first HTTP/1.1\r\n")) << requests[0];
  for (const std::string& each : {requests[1], requests[2]}) {
    EXPECT_TRUE(each.starts_with("POST /v1/completions?a=b HTTP/1.1\r\n")) << each;
    EXPECT_THAT(each, HasSubstr("Content-Type: application/json\r\n"));
    EXPECT_TRUE(each.ends_with("\r\n\r\n{\"prompt\":\"x\"}")) << each;
  }
}

TEST_F(BuildRequestsTest, UnexpectedResponseEndsThemWithItsBody) {
  Serve([](const std::string&, int n) {
    return n == 0 ? fakes::RawResponse(200, "") : fakes::RawResponse(500, "out of\nmemory\x01");
  });
  EXPECT_EQ(Outcome({To("/a"), To("/b"), To("/c")}),
            fmt::format("request 2 of 3 (GET /b, port {}) to pod builder: response 500: out of "
                        "memory ",
                        server_->port()));
  EXPECT_EQ(received().size(), 2U);
}

TEST_F(BuildRequestsTest, ExpectStatusOverridesSuccess) {
  Serve([](const std::string&, int) { return fakes::RawResponse(404, ""); });
  api::BuildRequest request = To("/a");
  request.expect_status = 404;
  EXPECT_EQ(Outcome({request}), "");
}

TEST_F(BuildRequestsTest, RedirectIsNotFollowed) {
  Serve([](const std::string&, int) {
    return fakes::RawResponse(302, "", "Location: http://10.0.0.1/\r\n");
  });
  EXPECT_THAT(Outcome({To("/a")}), HasSubstr("response 302"));
  EXPECT_EQ(received().size(), 1U);
}

TEST_F(BuildRequestsTest, ResponseOverOneMebibyteEndsThem) {
  Serve([](const std::string&, int n) {
    return fakes::RawResponse(200, std::string((1U << 20U) + static_cast<unsigned>(n), 'x'));
  });
  EXPECT_THAT(Outcome({To("/a"), To("/b")}),
              HasSubstr("the response is larger than 1048576 bytes"));
  EXPECT_EQ(received().size(), 2U);
}

TEST_F(BuildRequestsTest, EndlessHeadersEndThem) {
  Serve([](const std::string&, int) {
    return "HTTP/1.1 200 OK\r\nX: " + std::string(1U << 20U, 'x');
  });
  EXPECT_THAT(Outcome({To("/a")}), HasSubstr("the headers of the response are larger"));
}

TEST_F(BuildRequestsTest, MalformedResponseIsRetried) {
  Serve([](const std::string&, int n) {
    return n == 0 ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n"
                  : fakes::RawResponse(200, "");
  });
  EXPECT_EQ(Outcome({To("/a")}), "");
  EXPECT_EQ(received().size(), 2U);
}

TEST_F(BuildRequestsTest, LoadingServerIsRetried) {
  Serve([](const std::string&, int n) {
    return n < 2 ? fakes::RawResponse(503, "loading") : fakes::RawResponse(200, "");
  });
  EXPECT_EQ(Outcome({To("/a")}), "");
  EXPECT_EQ(received().size(), 3U);
}

TEST_F(BuildRequestsTest, LoadingServerFailsAtTimeout) {
  Serve([](const std::string&, int) { return fakes::RawResponse(503, "loading"); });
  api::BuildRequest request = To("/a");
  request.timeout_seconds = 1;
  EXPECT_THAT(Outcome({request}), HasSubstr("no expected response within 1 s: response 503"));
}

TEST_F(BuildRequestsTest, OnlyPodAddressesAreContacted) {
  Serve([](const std::string&, int) { return fakes::RawResponse(200, ""); });
  EXPECT_THAT(Outcome({To("/a")}, "169.254.169.254"), HasSubstr("not a valid pod IP"));
  EXPECT_TRUE(received().empty());
}

TEST_F(BuildRequestsTest, RequestsLeavingThePlanStopAndAreForgotten) {
  Serve([](const std::string&, int) { return fakes::RawResponse(503, ""); });
  requests_.Update(
      warmup_,
      {{.pod_uid = "p1", .pod_name = "builder", .pod_ip = "10.9.8.7", .requests = {To("/a")}}});
  ASSERT_TRUE(fakes::Await([&] { return !received().empty(); }));
  const api::CacheWarmup other{.ns = "team", .name = "other", .uid = "w2"};
  requests_.Update(other, {});
  ASSERT_EQ(requests_.States("w1").size(), 1U);
  EXPECT_FALSE(requests_.States("w1")[0].ended);
  requests_.Update(warmup_, {});
  EXPECT_TRUE(requests_.States("w1").empty());
  EXPECT_EQ(woken_, 0);
}

TEST_F(BuildRequestsTest, RequestsOfDeletedOrRecreatedWarmupStop) {
  Serve([](const std::string&, int) { return fakes::RawResponse(503, ""); });
  const model::DesiredBuildRequests batch{
      .pod_uid = "p1", .pod_name = "builder", .pod_ip = "10.9.8.7", .requests = {To("/a")}};
  for (const char* live : {"", "w2"}) {
    requests_.Update(warmup_, {batch});
    requests_.StopOthers({.ns = "team", .name = "llama"}, "w1");
    requests_.StopOthers({.ns = "team", .name = "other"}, live);
    EXPECT_EQ(requests_.States("w1").size(), 1U);
    requests_.StopOthers({.ns = "team", .name = "llama"}, live);
    EXPECT_TRUE(requests_.States("w1").empty());
  }
  EXPECT_EQ(woken_, 0);
}

TEST(IsPodAddress, RejectsLoopbackAndLinkLocal) {
  for (const char* good :
       {"10.0.0.1", "192.168.1.1", "100.64.0.1", "203.0.113.9", "fd00::1", "2001:db8::1"}) {
    EXPECT_TRUE(IsPodAddress(good)) << good;
  }
  for (const char* bad :
       {"", "127.0.0.1", "0.0.0.0", "169.254.169.254", "224.0.0.1", "255.255.255.255", "::1",
        "::", "fe80::1", "ff02::1", "::ffff:127.0.0.1", "::127.0.0.1", "metadata.google.internal",
        "10.0.0.1:80", "10.0.0.1/x", "10.1", "0x7f000001"}) {
    EXPECT_FALSE(IsPodAddress(bad)) << bad;
  }
}

}  // namespace
}  // namespace cachewarm::apply

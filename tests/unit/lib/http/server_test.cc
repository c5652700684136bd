// SPDX-License-Identifier: Apache-2.0
#include "lib/http/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

#include "lib/http/client.h"

namespace cachewarm::http {
namespace {

using std::chrono::steady_clock;

// A plain TCP peer.
class Peer {
 public:
  explicit Peer(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const int at_once = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Peer() { close(fd_); }

  void Say(std::string_view text) { send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  // The next bytes; empty if the server closes.
  std::string Some() {
    char bytes[4096];
    const ssize_t count = recv(fd_, bytes, sizeof bytes, 0);
    return {bytes, static_cast<size_t>(std::max<ssize_t>(count, 0))};
  }
  // Everything until the server closes.
  std::string Rest() {
    std::string text;
    char bytes[4096];
    for (ssize_t count = 0; (count = recv(fd_, bytes, sizeof bytes, 0)) > 0;) {
      text.append(bytes, static_cast<size_t>(count));
    }
    return text;
  }

 private:
  int fd_;
};

ServerOptions Loopback() {
  return {.address = "127.0.0.1"};
}

std::unique_ptr<Server> Start(ServerOptions options, std::map<std::string, Handler> routes) {
  auto server = StartServer(options, std::move(routes));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

std::string UrlOf(const Server& server, const std::string& target) {
  return "http://127.0.0.1:" + std::to_string(server.port()) + target;
}

ServerResponse Echo(const ServerRequest& request) {
  return {.status = 202,
          .content_type = "text/echo",
          .headers = {{"X-Seen", request.headers.Find("x-sent").value_or("nothing")}},
          .body = request.method + " " + request.path + " " + request.query + " " + request.body};
}

TEST(Server, CallsTheHandlerOfThePath) {
  const auto server = Start(Loopback(), {{"/echo", Echo}});
  const auto client = *MakeClient({});
  const auto response = client->Send({.method = Method::kPost,
                                      .url = UrlOf(*server, "/echo?a=b&c"),
                                      .headers = {{"X-Sent", "yes"}},
                                      .body = "text"},
                                     {});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 202);
  EXPECT_EQ(response->body, "POST /echo a=b&c text");
  EXPECT_EQ(response->headers.Find("Content-Type"), "text/echo");
  EXPECT_EQ(response->headers.Find("X-Seen"), "yes");
}

TEST(Server, UnknownPathIsNotFound) {
  const auto server = Start(Loopback(), {{"/echo", Echo}});
  const auto client = *MakeClient({});
  for (const char* path : {"/", "/echo/", "/ech", "/ECHO", "/echo%20"}) {
    const auto response = client->Send({.url = UrlOf(*server, path)}, {});
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->status, 404) << path;
  }
}

TEST(Server, HeadHasTheLengthButNotTheBody) {
  const auto server = Start(Loopback(), {{"/echo", Echo}});
  Peer peer(server->port());
  peer.Say("HEAD /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string answer = peer.Rest();
  EXPECT_NE(answer.find("Content-Length: 12"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST(Server, ConnectionServesPipelinedRequests) {
  const auto server = Start(Loopback(), {{"/echo", Echo}});
  Peer peer(server->port());
  peer.Say(
      "GET /echo?1 HTTP/1.1\r\nHost: a\r\n\r\nGET /echo?2 HTTP/1.1\r\nHost: a\r\n\r\n"
      "GET /echo?3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string answer = peer.Rest();
  for (const char* body : {"GET /echo 1 ", "GET /echo 2 ", "GET /echo 3 "}) {
    EXPECT_NE(answer.find(body), std::string::npos) << answer;
  }
}

TEST(Server, DrainAnswersThenClosesConnections) {
  const auto server = Start(Loopback(), {{"/echo", Echo}});
  const std::string request = "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n";
  Peer old(server->port());
  old.Say(request);
  EXPECT_NE(old.Some().find("GET /echo"), std::string::npos);
  server->Drain();
  Peer fresh(server->port());
  for (Peer* peer : {&old, &fresh}) {
    peer->Say(request);
    const std::string answer = peer->Rest();
    EXPECT_NE(answer.find("GET /echo"), std::string::npos) << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  }
}

TEST(Server, ThrowingHandlerReturnsInternalError) {
  const auto server = Start(Loopback(), {{"/bad", [](const ServerRequest&) -> ServerResponse {
                                            throw std::runtime_error("secret text");
                                          }}});
  const auto response = (*MakeClient({}))->Send({.url = UrlOf(*server, "/bad")}, {});
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 500);
  EXPECT_EQ(response->body.find("secret"), std::string::npos);
}

struct InvalidRequest {
  std::string name;
  std::string said;
  std::string answered;  // start of the status line; empty: closed without response
};

class RefusesRequest : public testing::TestWithParam<InvalidRequest> {};

TEST_P(RefusesRequest, AndCloses) {
  ServerOptions options = Loopback();
  options.header_bytes_max = 1000;
  options.body_bytes_max = 100;
  options.request_timeout = Duration(300);
  options.idle_timeout = Duration(300);
  const auto server = Start(options, {{"/echo", Echo}});
  Peer peer(server->port());
  peer.Say(GetParam().said);
  const std::string answer = peer.Rest();
  if (GetParam().answered.empty()) {
    EXPECT_EQ(answer, "");
  } else {
    EXPECT_TRUE(answer.starts_with(GetParam().answered)) << answer;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusesRequest,
    testing::Values(
        InvalidRequest{"huge_header",
                       "GET /echo HTTP/1.1\r\nX: " + std::string(2000, 'x') + "\r\n\r\n",
                       "HTTP/1.1 431"},
        InvalidRequest{"huge_body", "POST /echo HTTP/1.1\r\nContent-Length: 101\r\n\r\n",
                       "HTTP/1.1 413"},
        InvalidRequest{"huge_chunked_body",
                       "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" +
                           std::string(101, 'x') + "\r\n0\r\n\r\n",
                       "HTTP/1.1 413"},
        InvalidRequest{"noise", "\x16\x03\x01\x02 hello\r\n\r\n", "HTTP/1.1 400"},
        InvalidRequest{"bad_length", "POST /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                       "HTTP/1.1 400"},
        InvalidRequest{"silence", "", ""},
        InvalidRequest{"half_a_head", "GET /echo HTTP/1.1\r\nHos", ""},
        InvalidRequest{"half_a_body", "POST /echo HTTP/1.1\r\nContent-Length: 50\r\n\r\nabc", ""}),
    [](const auto& each) { return each.param.name; });

// Each write ends with the first letter of the next header, where Beast's own limit restarts.
TEST(Server, LimitsTotalOfSlowHeaders) {
  ServerOptions options = Loopback();
  options.header_bytes_max = 1000;
  const auto server = Start(options, {{"/echo", Echo}});
  Peer peer(server->port());
  peer.Say("GET /echo HTTP/1.1\r\nX");
  for (int i = 0; i < 100; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    peer.Say("-Header-Of-Some-Length: value\r\nX");
  }
  peer.Say("-Last: value\r\nConnection: close\r\n\r\n");
  const std::string answer = peer.Rest();
  EXPECT_FALSE(answer.starts_with("HTTP/1.1 2")) << answer;
}

TEST(Server, LimitsTrailers) {
  const auto server = Start(Loopback(), {{"/echo", Echo}});
  Peer peer(server->port());
  peer.Say("POST /echo HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
  peer.Say("X: " + std::string(1U << 20U, 'x') + "\r\n\r\n");
  const std::string answer = peer.Rest();
  EXPECT_FALSE(answer.starts_with("HTTP/1.1 2")) << answer;
}

TEST(Server, ConnectionsBeyondTheLimitAreClosed) {
  ServerOptions options = Loopback();
  options.connections_max = 2;
  const auto server = Start(options, {{"/echo", Echo}});
  Peer first(server->port());
  Peer second(server->port());
  Peer third(server->port());
  EXPECT_EQ(third.Rest(), "");
  first.Say("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(first.Rest().starts_with("HTTP/1.1 202"));
  second.Say("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(second.Rest().starts_with("HTTP/1.1 202"));
}

TEST(Server, StopEndsIdleConnectionsAtOnce) {
  auto server = Start(Loopback(), {{"/echo", Echo}});
  Peer idle(server->port());
  Peer used(server->port());
  used.Say("GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto began = steady_clock::now();
  server->Stop();
  server->Stop();
  EXPECT_LT(steady_clock::now() - began, std::chrono::seconds(10));
  EXPECT_EQ(idle.Rest(), "");
}

TEST(Server, StopWaitsForRunningRequest) {
  std::promise<void> entered;
  std::promise<void> release;
  auto released = release.get_future().share();
  auto server = Start(Loopback(), {{"/slow", [&](const ServerRequest&) {
                                      entered.set_value();
                                      released.wait();
                                      return ServerResponse{.body = "done"};
                                    }}});
  Peer peer(server->port());
  peer.Say("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
  entered.get_future().wait();
  auto stopping = std::async(std::launch::async, [&] { server->Stop(); });
  release.set_value();
  EXPECT_NE(peer.Rest().find("done"), std::string::npos);
  EXPECT_EQ(stopping.wait_for(std::chrono::seconds(5)), std::future_status::ready);
}

TEST(Server, StopClosesTheListener) {
  auto server = Start(Loopback(), {{"/echo", Echo}});
  const std::string url = UrlOf(*server, "/echo");
  server->Stop();
  EXPECT_EQ((*MakeClient({}))->Send({.url = url}, {}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(Server, StartReportsAddressInUse) {
  const auto server = Start(Loopback(), {});
  ServerOptions same = Loopback();
  same.port = server->port();
  const absl::Status status = StartServer(same, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(std::to_string(same.port)), std::string::npos) << status;
  EXPECT_EQ(StartServer({.address = "localhost"}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Server, AnswersConcurrentRequests) {
  const auto server = Start(Loopback(), {{"/echo", Echo}});
  const auto client = *MakeClient({});
  std::vector<std::jthread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const auto response = client->Send({.url = UrlOf(*server, "/echo")}, {});
        EXPECT_TRUE(response.ok() && response->status == 202) << response.status();
      }
    });
  }
}

}  // namespace
}  // namespace cachewarm::http

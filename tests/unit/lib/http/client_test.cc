// SPDX-License-Identifier: Apache-2.0
#include "lib/http/client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "tests/fakes/raw_server.h"
#include "tests/unit/lib/http/client_ends.h"

namespace cachewarm::http {
namespace {

using fakes::RawChunk;
using fakes::RawConnection;
using fakes::RawResponse;
using fakes::RawServer;
using testing::Collector;
using testing::EveryClient;
using testing::kChunkedHead;
using testing::NewClient;
using testing::Within;

class StringSource final : public BodySource {
 public:
  explicit StringSource(std::string text, size_t piece = SIZE_MAX)
      : text_(std::move(text)), announced_(text_.size()), piece_(piece) {}
  absl::StatusOr<size_t> Read(std::span<char> out) override {
    if (!error.ok() && at_ > 0) {
      return error;
    }
    const size_t count = std::min({out.size(), piece_, text_.size() - at_});
    std::copy_n(text_.data() + at_, count, out.data());
    at_ += count;
    return count;
  }
  uint64_t size() const override { return announced_; }
  void Announce(uint64_t size) { announced_ = size; }
  absl::Status error;

 private:
  std::string text_;
  uint64_t announced_;
  size_t piece_;
  size_t at_ = 0;
};

// Whitespace around a field value is ignored (RFC 9110 §5.5).
bool Says(const std::string& request, const std::string& field) {
  const std::string tight =
      field.substr(0, field.find(": ") + 1) + field.substr(field.find(": ") + 2);
  return request.find(field + "\r\n") != std::string::npos ||
         request.find(tight + "\r\n") != std::string::npos;
}

TEST_P(EveryClient, SendsMethodTargetHeadersAndBodyAsGiven) {
  std::string seen;
  RawServer server([&](RawConnection& connection, int) {
    seen = connection.ReadRequest();
    connection.Write(RawResponse(201, "made", "X-Answer: yes\r\n"));
    connection.AwaitPeerClose();
  });
  const auto response = NewClient()->Send({.method = Method::kPatch,
                                           .url = server.Url("/a%2Fb/?x=1&y=%5B2%5D"),
                                           .headers = {{"X-One", "1"}, {"Content-Type", "a/b"}},
                                           .body = "hello"},
                                          {});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body, "made");
  EXPECT_EQ(response->headers.Find("x-answer"), "yes");
  EXPECT_EQ(seen.substr(0, seen.find("\r\n")), "PATCH /a%2Fb/?x=1&y=%5B2%5D HTTP/1.1");
  EXPECT_TRUE(Says(seen, "X-One: 1"));
  EXPECT_TRUE(Says(seen, "Content-Type: a/b"));
  EXPECT_TRUE(Says(seen, "User-Agent: cachewarm"));
  EXPECT_TRUE(seen.ends_with("\r\n\r\nhello"));
}

TEST_P(EveryClient, SendsRepeatedHeadersAsRepeatedFields) {
  std::string seen;
  RawServer server([&](RawConnection& connection, int) {
    seen = connection.ReadRequest();
    connection.Write(RawResponse(200, ""));
  });
  Request request{.url = server.Url("/")};
  for (const char* group : {"a", "b, c", "d"}) {
    request.headers.Add("Impersonate-Group", group);
  }
  ASSERT_TRUE(NewClient()->Send(request, {}).ok());
  for (const char* group : {"a", "b, c", "d"}) {
    EXPECT_TRUE(Says(seen, std::string("Impersonate-Group: ") + group)) << group << "\n" << seen;
  }
}

TEST_P(EveryClient, RejectsLineBreaksInHeaders) {
  RawServer server([](RawConnection& connection, int) { connection.Write(RawResponse(200, "")); });
  for (const char* value : {"a\r\nInjected: b", "a\nInjected: b"}) {
    const auto response =
        NewClient()->Send({.url = server.Url("/"), .headers = {{"X-Name", value}}}, {});
    EXPECT_EQ(response.status().code(), absl::StatusCode::kInvalidArgument) << response.status();
  }
}

TEST_P(EveryClient, SendsEveryMethodWithContentLength) {
  for (const Method method : {Method::kGet, Method::kPost, Method::kPut, Method::kPatch,
                              Method::kDelete, Method::kHead}) {
    std::string seen;
    RawServer server([&](RawConnection& connection, int) {
      seen = connection.ReadRequest();
      connection.Write(method == Method::kHead ? "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"
                                               : RawResponse(200, ""));
      connection.AwaitPeerClose();
    });
    const auto response = NewClient()->Send({.method = method, .url = server.Url("/")}, {});
    ASSERT_TRUE(response.ok()) << MethodName(method) << response.status();
    EXPECT_TRUE(seen.starts_with(MethodName(method)));
    const bool writes =
        method == Method::kPost || method == Method::kPut || method == Method::kPatch;
    EXPECT_EQ(Says(seen, "Content-Length: 0"), writes) << seen;
  }
}

TEST_P(EveryClient, ErrorStatusIsReturnedAsResponse) {
  RawServer server([](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write(RawResponse(503, "later", "Retry-After: 3\r\n"));
  });
  const auto response = NewClient()->Send({.url = server.Url("/")}, {});
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 503);
  EXPECT_EQ(response->headers.Find("retry-after"), "3");
  EXPECT_EQ(StatusOf(*response), absl::UnavailableError("HTTP 503: later"));
}

TEST_P(EveryClient, RedirectsAreReturnedToTheCaller) {
  RawServer server([](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write(RawResponse(307, "", "Location: http://elsewhere.example/x\r\n"));
  });
  const auto response = NewClient()->Send({.url = server.Url("/")}, {});
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 307);
  EXPECT_EQ(response->headers.Find("Location"), "http://elsewhere.example/x");
  EXPECT_EQ(server.connections(), 1);
}

TEST(Client, ReusesConnections) {
  RawServer server([](RawConnection& connection, int) {
    while (!connection.ReadRequest().empty()) {
      connection.Write(RawResponse(200, "x"));
    }
  });
  const auto client = NewClient();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(client->Send({.url = server.Url("/")}, {}).ok());
  }
  // Sometimes the next request starts before the connection is back in the pool.
  EXPECT_LT(server.connections(), 10);
}

TEST(Client, ResponseWithoutBodyKeepsConnectionUsable) {
  for (const std::string head : {"HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Same\r\n\r\n"}) {
    RawServer server([&](RawConnection& connection, int) {
      while (!connection.ReadRequest().empty()) {
        connection.Write(head);
      }
    });
    const auto client = NewClient();
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(client->Send({.url = server.Url("/")}, {}).ok());
    }
    EXPECT_LT(server.connections(), 10);
  }
}

TEST(Client, ReplacesConnectionClosedByServer) {
  RawServer server([](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write(RawResponse(200, "x"));
  });
  const auto client = NewClient();
  for (int i = 0; i < 3; ++i) {
    const auto response =
        client->Send({.method = Method::kPost, .url = server.Url("/"), .body = "again"}, {});
    ASSERT_TRUE(response.ok()) << i << response.status();
  }
}

TEST_P(EveryClient, SinkReceivesChunkedBodyInPieces) {
  std::promise<void> first_seen;
  RawServer server([&](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write(kChunkedHead + RawChunk("one\n"));
    first_seen.get_future().wait_for(std::chrono::seconds(20));
    connection.Write(RawChunk("two\n") + RawChunk(""));
  });
  Collector sink;
  std::jthread watcher([&] {
    EXPECT_TRUE(sink.AwaitBody("one\n"));
    first_seen.set_value();
  });
  const auto response = NewClient()->Stream({.url = server.Url("/")}, sink, {});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(sink.body, "one\ntwo\n");
  EXPECT_EQ(sink.status, 200);
  EXPECT_EQ(response->body, "");
}

TEST_P(EveryClient, SinkDoesNotReceiveErrorBody) {
  RawServer server([](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write(RawResponse(410, "gone for good"));
  });
  Collector sink;
  const auto response =
      NewClient()->Stream({.url = server.Url("/"), .body_bytes_max = 4}, sink, {});
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 410);
  EXPECT_EQ(response->body, "gone") << "truncated, not rejected";
  EXPECT_EQ(sink.body, "");
  EXPECT_EQ(sink.status, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryClient, ::testing::ValuesIn(testing::kClientKinds),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(EveryClient, RefusedConnectionIsUnavailable) {
  uint16_t port = 0;
  {
    RawServer server([](RawConnection&, int) {});
    port = server.port();
  }
  const auto response =
      NewClient()->Send({.url = "http://127.0.0.1:" + std::to_string(port) + "/"}, {});
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(response.status().message().find("127.0.0.1"), std::string::npos);
}

TEST(Client, UnknownHostIsUnavailable) {
  const auto response = NewClient()->Send({.url = "https://no-such-host.invalid/"}, {});
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable);
}

TEST_P(EveryClient, InactivityTimeoutEndsSilentResponse) {
  for (const std::string said : {"", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"}) {
    RawServer server([&](RawConnection& connection, int) {
      connection.ReadRequest();
      connection.Write(said);
      connection.BlockUntilStop();
    });
    Collector sink;
    const auto response =
        NewClient()->Stream({.url = server.Url("/"), .inactivity = Duration(150)}, sink, {});
    EXPECT_EQ(response.status().code(), absl::StatusCode::kDeadlineExceeded) << response.status();
  }
}

TEST_P(EveryClient, InactivityTimeoutEndsStalledUpload) {
  RawServer server([](RawConnection& connection, int) { connection.BlockUntilStop(); },
                   {.receive_buffer_bytes = 4096});
  StringSource source(std::string(64U << 20U, 'x'));
  const auto response = NewClient()->Send({.method = Method::kPut,
                                           .url = server.Url("/"),
                                           .source = &source,
                                           .inactivity = Duration(300)},
                                          {});
  EXPECT_EQ(response.status().code(), absl::StatusCode::kDeadlineExceeded) << response.status();
}

TEST_P(EveryClient, SlowSinkThrottlesServerWithoutTimeout) {
  constexpr uint64_t kBytes = 64U << 20U;
  RawConnection* peer = nullptr;
  std::promise<void> answering;
  RawServer server([&](RawConnection& connection, int) {
    connection.ReadRequest();
    peer = &connection;
    answering.set_value();
    connection.Write(RawResponse(200, std::string(kBytes, 'x')));
    connection.BlockUntilStop();
  });
  Collector sink;
  sink.is_blocked = true;
  std::jthread watcher([&] {
    answering.get_future().wait();
    uint64_t before = 0;
    // The count of written bytes stops growing once every buffer is full.
    EXPECT_TRUE(Within(std::chrono::seconds(60), [&] {
      const uint64_t now = peer->written();
      std::this_thread::sleep_for(std::chrono::milliseconds(4000));  // longer than the inactivity
      return now > 0 && std::exchange(before, now) == now;
    }));
    EXPECT_LT(peer->written(), kBytes / 2);
    sink.Release();
  });
  const auto response =
      NewClient()->Stream({.url = server.Url("/"), .inactivity = Duration(3000)}, sink, {});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(sink.taken, kBytes);
}

TEST_P(EveryClient, SinkErrorEndsTransfer) {
  std::atomic<int> closed = 0;
  RawServer server([&](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write(kChunkedHead + RawChunk("abc"));
    closed += connection.AwaitPeerClose() ? 1 : 0;
  });
  Collector sink;
  sink.write_status = absl::DataLossError("not what I expected");
  EXPECT_EQ(NewClient()->Stream({.url = server.Url("/")}, sink, {}).status(), sink.write_status);
  Collector early;
  early.begin_status = absl::FailedPreconditionError("not at all");
  EXPECT_EQ(NewClient()->Stream({.url = server.Url("/")}, early, {}).status(), early.begin_status);
  EXPECT_EQ(early.body, "");
  EXPECT_TRUE(Within(std::chrono::seconds(20), [&] { return closed == 2; }))
      << "the connections must be closed";
}

TEST_P(EveryClient, UploadStreamsSourceWithContentLength) {
  std::string seen;
  RawServer server([&](RawConnection& connection, int) {
    seen = connection.ReadRequest();
    connection.Write(RawResponse(201, ""));
  });
  std::string content;
  for (int i = 0; i < 300'000; ++i) {
    content += std::to_string(i);
  }
  StringSource source(content, 70'001);
  const auto response =
      NewClient()->Send({.method = Method::kPut, .url = server.Url("/up"), .source = &source}, {});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_TRUE(Says(seen, "Content-Length: " + std::to_string(content.size())));
  EXPECT_EQ(seen.substr(seen.find("\r\n\r\n") + 4), content);
}

TEST_P(EveryClient, SendsEmptyUpload) {
  std::string seen;
  RawServer server([&](RawConnection& connection, int) {
    seen = connection.ReadRequest();
    connection.Write(RawResponse(201, ""));
  });
  StringSource source("");
  const auto response =
      NewClient()->Send({.method = Method::kPut, .url = server.Url("/up"), .source = &source}, {});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_TRUE(Says(seen, "Content-Length: 0"));
}

TEST_P(EveryClient, FailingOrShortSourceEndsUpload) {
  RawServer server([](RawConnection& connection, int) { connection.AwaitPeerClose(); });
  StringSource failing(std::string(1U << 20U, 'x'), 1000);
  failing.error = absl::DataLossError("disk");
  EXPECT_EQ(NewClient()
                ->Send({.method = Method::kPut, .url = server.Url("/"), .source = &failing}, {})
                .status(),
            failing.error);
  StringSource early("abc");
  early.Announce(10);
  EXPECT_EQ(NewClient()
                ->Send({.method = Method::kPut, .url = server.Url("/"), .source = &early}, {})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(EveryClient, ThreadsShareOneClient) {
  RawServer server([](RawConnection& connection, int) {
    for (std::string request; !(request = connection.ReadRequest()).empty();) {
      connection.Write(RawResponse(200, request.substr(0, request.find(" HTTP"))));
    }
  });
  const auto client = NewClient();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string target = "/" + std::to_string(t) + "/" + std::to_string(i);
        const auto response = client->Send({.url = server.Url(target)}, {});
        EXPECT_TRUE(response.ok()) << response.status();
        EXPECT_EQ(response->body, "GET " + target);
      }
    });
  }
}

TEST(Client, PlainHttpRequiresLoopbackOrListedHost) {
  const auto refused = NewClient()->Send({.url = "http://registry.invalid/"}, {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("use https"), std::string::npos);
  const auto client = *MakeClient({.plain_http_hosts = {"registry.invalid"}});
  EXPECT_EQ(client->Send({.url = "http://registry.invalid/"}, {}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_P(EveryClient, RejectsMalformedUrl) {
  for (const char* url : {"", "http:/x", "http://a b/", "gopher://a"}) {
    EXPECT_EQ(NewClient()->Send({.url = url}, {}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << url;
  }
}

}  // namespace
}  // namespace cachewarm::http

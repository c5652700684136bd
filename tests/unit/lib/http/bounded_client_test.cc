// SPDX-License-Identifier: Apache-2.0
#include "lib/http/bounded_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/fakes/await.h"
#include "tests/fakes/raw_server.h"
#include "tests/unit/lib/http/client_ends.h"

// Tests responses of untrusted servers, in addition to the tests of every client (EveryClient).
namespace cachewarm::http {
namespace {

using fakes::Await;
using fakes::RawChunk;
using fakes::RawConnection;
using fakes::RawResponse;
using fakes::RawServer;
using testing::Collector;
using testing::FullListener;
using testing::kChunkedHead;
using testing::NewBoundedClient;

// More than the kernel buffers for both ends of a connection (tcp_rmem and tcp_wmem).
constexpr uint64_t kSocketBytes = 64U << 20U;
constexpr uint64_t kWriteLimit = 4 * kSocketBytes;

std::string Repeated(const std::string& text, size_t bytes = 64U << 10U) {
  std::string many;
  while (many.size() < bytes) {
    many += text;
  }
  return many;
}

// A response that never ends.
struct Endless {
  std::string name;
  std::string begin;
  std::string more;
  absl::StatusCode code = absl::StatusCode::kResourceExhausted;
};

class BoundedClientEndsEndlessResponse : public ::testing::TestWithParam<Endless> {
 protected:
  // Returns the status of a request with this response; sets written_ to the bytes written.
  template <typename Ask>
  absl::Status Answered(Ask ask) {
    RawServer server([&](RawConnection& connection, int) {
      connection.ReadRequest();
      connection.Write(GetParam().begin);
      for (uint64_t before = UINT64_MAX;
           connection.written() != before && connection.written() < kWriteLimit;) {
        before = connection.written();
        connection.Write(GetParam().more);
      }
      written_ = connection.written();
      ended_ = true;
    });
    const absl::Status status = ask(Request{.url = server.Url("/"), .body_bytes_max = 1U << 20U});
    EXPECT_TRUE(Await([&] { return ended_.load(); }));
    return status;
  }

  std::atomic<uint64_t> written_ = 0;
  std::atomic<bool> ended_ = false;
};

TEST_P(BoundedClientEndsEndlessResponse, AtTheLimit) {
  const absl::Status status = Answered(
      [](const Request& request) { return NewBoundedClient()->Send(request, {}).status(); });
  EXPECT_EQ(status.code(), GetParam().code) << status;
  EXPECT_LT(written_, kSocketBytes);
}

constexpr char kOk[] = "HTTP/1.1 200 OK\r\n";

INSTANTIATE_TEST_SUITE_P(
    Table, BoundedClientEndsEndlessResponse,
    ::testing::Values(
        Endless{"chunk_of_less_than_nothing", std::string(kChunkedHead) + "-1\r\n", Repeated("x"),
                absl::StatusCode::kUnavailable},
        Endless{"chunk_of_2_gib", std::string(kChunkedHead) + "7fffffff\r\n", Repeated("x")},
        Endless{"chunk_of_16_eib", std::string(kChunkedHead) + "ffffffffffffffff\r\n",
                Repeated("x")},
        Endless{"chunk_of_more_than_16_eib", std::string(kChunkedHead) + "10000000000000000\r\n",
                Repeated("x"), absl::StatusCode::kUnavailable},
        Endless{"chunks", kChunkedHead, Repeated(RawChunk(std::string(1000, 'x')))},
        Endless{"chunk_head", std::string(kChunkedHead) + "1;", Repeated("x"),
                absl::StatusCode::kUnavailable},
        Endless{"trailers", std::string(kChunkedHead) + "0\r\n", Repeated("X: y\r\n"),
                absl::StatusCode::kUnavailable},
        Endless{"status_line", "HTTP/1.1 200 ", Repeated("x")},
        Endless{"header", std::string(kOk) + "X: ", Repeated("x")},
        Endless{"headers", kOk, Repeated("X: y\r\n")},
        // Each write ends with the first letter of the next header, where Beast's limit restarts.
        Endless{"headers_one_by_one", std::string(kOk) + "X", "-Y: z\r\nX"},
        Endless{"interim_answers", "", "HTTP/1.1 100 Continue\r\n\r\n"},
        Endless{"body_of_a_length", std::string(kOk) + "Content-Length: 99999999999\r\n\r\n",
                Repeated("x")},
        Endless{"body_without_length", std::string(kOk) + "\r\n", Repeated("x")}),
    [](const auto& each) { return each.param.name; });

class BoundedClientTruncatesEndlessError : public BoundedClientEndsEndlessResponse {};

TEST_P(BoundedClientTruncatesEndlessError, AndHangsUp) {
  const absl::Status status = Answered([](const Request& request) {
    Collector sink;
    const auto response = NewBoundedClient()->Stream(request, sink, {});
    EXPECT_EQ(response.ok() ? response->body.size() : 0, request.body_bytes_max);
    return response.status();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LT(written_, kSocketBytes);
}

INSTANTIATE_TEST_SUITE_P(
    Table, BoundedClientTruncatesEndlessError,
    ::testing::Values(Endless{"body_without_length", "HTTP/1.1 500 No\r\n\r\n", Repeated("x")},
                      Endless{"chunks", "HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n",
                              Repeated(RawChunk(std::string(1000, 'x')))}),
    [](const auto& each) { return each.param.name; });

TEST(BoundedClient, TotalTimeoutEndsTricklingResponse) {
  for (const std::string begin :
       {"HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7ffff\r\n"}) {
    RawServer server([&](RawConnection& connection, int) {
      connection.ReadRequest();
      connection.Write(begin);
      for (uint64_t before = UINT64_MAX; connection.written() != before;) {
        before = connection.written();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        connection.Write("x");
      }
    });
    const auto response =
        NewBoundedClient({.total = Duration(300)})->Send({.url = server.Url("/")}, {});
    EXPECT_EQ(response.status().code(), absl::StatusCode::kDeadlineExceeded) << response.status();
  }
}

TEST(BoundedClient, AcceptsHeadersUpToTheLimit) {
  const std::string head = "HTTP/1.1 204 None\r\nX: " + std::string(1000, 'y') + "\r\n\r\n";
  RawServer server([&](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write(head);
  });
  const auto status = [&](size_t limit) {
    return NewBoundedClient({.header_bytes_max = limit})
        ->Send({.url = server.Url("/")}, {})
        .status()
        .code();
  };
  EXPECT_EQ(status(head.size()), absl::StatusCode::kOk);
  EXPECT_EQ(status(head.size() - 1), absl::StatusCode::kResourceExhausted);
}

TEST(BoundedClient, SkipsInterimResponsesButNotProtocolSwitch) {
  RawServer server([](RawConnection& connection, int number) {
    connection.ReadRequest();
    connection.Write(number == 0 ? "HTTP/1.1 100 Continue\r\n\r\n"
                                   "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" +
                                       RawResponse(200, "at last")
                                 : "HTTP/1.1 101 Switching Protocols\r\n\r\n");
    connection.AwaitPeerClose();
  });
  const auto client = NewBoundedClient();
  const auto response = client->Send({.url = server.Url("/")}, {});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "at last");
  EXPECT_EQ(response->headers.Find("Link"), std::nullopt);
  const auto other = client->Send({.url = server.Url("/")}, {});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->status, 101);
}

// A chunk frame that arrives in single bytes triggered an assertion in Beast.
TEST(BoundedClient, ReadsResponseByteByByte) {
  const std::string answer = kChunkedHead + RawChunk("abc") + "1;x=y\r\nd\r\n0\r\nT: u\r\n\r\n";
  const std::string nothing = std::string(kChunkedHead) + "0\r\n\r\n";
  for (const std::string& whole : {answer, nothing}) {
    RawServer server([&](RawConnection& connection, int) {
      connection.ReadRequest();
      for (const char c : whole) {
        connection.Write({&c, 1});
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      connection.AwaitPeerClose();
    });
    const auto response = NewBoundedClient()->Send({.url = server.Url("/")}, {});
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->body, whole == answer ? "abcd" : "");
    EXPECT_EQ(response->headers.Find("T"), std::nullopt);
  }
}

TEST(BoundedClient, EveryRequestOpensAConnection) {
  std::atomic<int> closed = 0;
  RawServer server([&](RawConnection& connection, int) {
    EXPECT_NE(connection.ReadRequest().find("Connection: close\r\n"), std::string::npos);
    connection.Write(RawResponse(200, "x"));
    closed += connection.AwaitPeerClose() ? 1 : 0;
  });
  const auto client = NewBoundedClient();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(client->Send({.url = server.Url("/")}, {}).ok());
  }
  EXPECT_EQ(server.connections(), 3);
  EXPECT_TRUE(Await([&] { return closed == 3; }));
}

TEST(BoundedClient, RefusedConnectionsAreUnavailable) {
  const FullListener listener;
  EXPECT_EQ(
      NewBoundedClient({.connect = Duration(100)})->Send({.url = listener.url}, {}).status().code(),
      absl::StatusCode::kUnavailable);
}

TEST(BoundedClient, ConnectsToItsAddressOnly) {
  for (const char* url : {"http://127.0.0.2/", "http://localhost/", "http://10.0.0.1/",
                          "http://0.0.0.0/", "http://[::1]/", "https://127.0.0.1/"}) {
    EXPECT_EQ(NewBoundedClient()->Send({.url = url}, {}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << url;
  }
  for (const char* address : {"", "localhost", "127.0.0.1:80", "10.1"}) {
    EXPECT_EQ(MakeBoundedClient({.address = address}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << address;
  }
}

TEST(BoundedClient, ComparesIpv6AddressesByValue) {
  const auto client = *MakeBoundedClient({.address = "::1"});
  // No listener: the kernel refuses the connection, not the client.
  EXPECT_EQ(client->Send({.url = "http://[0:0:0:0:0:0:0:1]:1/"}, {}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(BoundedClient, RejectsHeaderWithLineBreak) {
  RawServer server([](RawConnection&, int) {});
  EXPECT_EQ(NewBoundedClient()
                ->Send({.url = server.Url("/"), .headers = {{"X", "1\r\nY: 2"}}}, {})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server.connections(), 0);
}

}  // namespace
}  // namespace cachewarm::http

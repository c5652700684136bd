// SPDX-License-Identifier: Apache-2.0
// What clients make of responses that are too large, broken or without a length.
#include <gtest/gtest.h>

#include <tuple>

#include "lib/http/client.h"
#include "tests/fakes/raw_server.h"
#include "tests/unit/lib/http/client_ends.h"

namespace cachewarm::http {
namespace {

using fakes::RawChunk;
using fakes::RawConnection;
using fakes::RawResponse;
using fakes::RawServer;
using testing::ClientKind;
using testing::Collector;
using testing::EveryClient;
using testing::kChunkedHead;
using testing::NewClient;

TEST_P(EveryClient, RejectsResponseOverTheLimit) {
  RawServer server([](RawConnection& connection, int) {
    while (!connection.ReadRequest().empty()) {
      connection.Write(RawResponse(200, std::string(1000, 'x')));
    }
  });
  const auto client = NewClient();
  EXPECT_TRUE(client->Send({.url = server.Url("/"), .body_bytes_max = 1000}, {}).ok());
  EXPECT_EQ(client->Send({.url = server.Url("/"), .body_bytes_max = 999}, {}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

struct Cut {
  std::string name;
  std::string bytes;
  bool is_reset = false;
};

class ClientRejectsBrokenResponse : public ::testing::TestWithParam<std::tuple<ClientKind, Cut>> {};

TEST_P(ClientRejectsBrokenResponse, AsUnavailable) {
  const auto& [kind, cut] = GetParam();
  RawServer server([&cut = cut](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write(cut.bytes);
    if (cut.is_reset) {
      connection.Reset();
    }
  });
  Collector sink;
  const auto response = kind.make()->Stream({.url = server.Url("/")}, sink, {});
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable) << response.status();
}

const Cut kCuts[] = {
    {"nothing", ""},
    {"noise", "SSH-2.0-OpenSSH\r\n\r\n"},
    {"head", "HTTP/1.1 200 OK\r\nContent-Le"},
    {"body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"},
    {"chunk", std::string(kChunkedHead) + "a\r\nabc"},
    {"chunk_head", std::string(kChunkedHead) + RawChunk("abc") + "5"},
    {"last_chunk", std::string(kChunkedHead) + RawChunk("abc")},
    {"chunk_size", std::string(kChunkedHead) + "zz\r\nabc"},
    {"chunk_size_below_zero", std::string(kChunkedHead) + "-1\r\nabc\r\n"},
    {"reset", std::string(kChunkedHead) + RawChunk("abc"), true},
};

INSTANTIATE_TEST_SUITE_P(Table, ClientRejectsBrokenResponse,
                         ::testing::Combine(::testing::ValuesIn(testing::kClientKinds),
                                            ::testing::ValuesIn(kCuts)),
                         [](const auto& each) {
                           return std::get<ClientKind>(each.param).name + std::string("_") +
                                  std::get<Cut>(each.param).name;
                         });

// cpprestsdk parses the size as an int and passes SIZE_MAX bytes on its only thread.
TEST_P(EveryClient, NegativeChunkSizeFailsOnlyItsRequest) {
  for (const std::string size : {"-1", "-2"}) {
    RawServer server([&](RawConnection& connection, int number) {
      connection.ReadRequest();
      if (number > 0) {
        return connection.Write(RawResponse(200, "well"));
      }
      connection.Write(kChunkedHead + RawChunk("abc") + size + "\r\nabc\r\n");
      connection.AwaitPeerClose();
    });
    const auto client = NewClient();
    EXPECT_EQ(client->Send({.url = server.Url("/")}, {}).status().code(),
              absl::StatusCode::kUnavailable);
    const auto response = client->Send({.url = server.Url("/")}, {});
    ASSERT_TRUE(response.ok()) << size << response.status();
    EXPECT_EQ(response->body, "well");
  }
}

TEST_P(EveryClient, BodilessResponseIgnoresLengthHeaders) {
  const std::pair<Method, std::string> table[] = {
      {Method::kHead, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"},
      {Method::kHead, kChunkedHead},
      {Method::kGet, "HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n"},
      {Method::kGet, "HTTP/1.1 304 Same\r\nContent-Length: 7\r\n\r\n"},
  };
  for (const auto& [method, head] : table) {
    RawServer server([&head = head](RawConnection& connection, int) {
      connection.ReadRequest();
      connection.Write(head);
      connection.AwaitPeerClose();
    });
    const auto response = NewClient()->Send({.method = method, .url = server.Url("/")}, {});
    ASSERT_TRUE(response.ok()) << head << response.status();
    EXPECT_EQ(response->body, "");
  }
}

TEST_P(EveryClient, ResponseWithoutLengthEndsWithConnection) {
  RawServer server([](RawConnection& connection, int) {
    connection.ReadRequest();
    connection.Write("HTTP/1.0 200 OK\r\n\r\nall of it");
  });
  const auto response = NewClient()->Send({.url = server.Url("/")}, {});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "all of it");
}

}  // namespace
}  // namespace cachewarm::http

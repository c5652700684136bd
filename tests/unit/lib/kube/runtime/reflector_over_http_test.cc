// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "lib/http/client.h"
#include "lib/kube/client/http_client.h"
#include "lib/kube/runtime/reflector.h"
#include "tests/fakes/await.h"
#include "tests/fakes/memory_log.h"
#include "tests/fakes/raw_server.h"

namespace cachewarm::kube {
namespace {

using fakes::RawChunk;
using fakes::RawResponse;

constexpr char kStream[] =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";

std::string Pod(const std::string& name, int version) {
  return fmt::format(R"({{"metadata":{{"name":"{}","resourceVersion":"{}"}}}})", name, version);
}

std::string Page(const std::string& item, int version, const std::string& more) {
  return fmt::format(R"({{"metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
                     version, more, item);
}

std::string Added(const std::string& name, int version) {
  return RawChunk(fmt::format(R"({{"type":"ADDED","object":{}}})", Pod(name, version)) + "\n");
}

// A thread-safe list of lines.
class Lines {
 public:
  void Add(std::string line) {
    std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  std::vector<std::string> All() const {
    std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

// An HTTP/1.1 server closes connections where an HTTP/2 server sends GOAWAY.
TEST(ReflectorOverHttp, ResumesAfterServerClosesConnections) {
  Lines asked;
  fakes::RawServer server([&asked](fakes::RawConnection& connection, int number) {
    const auto take = [&] {
      const std::string request = connection.ReadRequest();
      asked.Add(fmt::format("{}: {}", number, request.substr(0, request.find(" HTTP/"))));
    };
    take();
    if (number == 0) {
      connection.Write(RawResponse(200, Page(Pod("a", 3), 5, "more")));
      take();
      connection.Write(RawResponse(200, Page(Pod("b", 4), 5, ""), "Connection: close\r\n"));
    } else if (number == 1) {
      connection.Write(kStream + Added("c", 6) + RawChunk(""));
    } else if (number == 2) {
      connection.Write(kStream + Added("d", 7));  // and no last chunk
    } else {
      connection.Write(kStream + Added("e", 8));
      connection.BlockUntilStop();
    }
  });
  const auto http = *http::MakeClient({});
  const auto client = MakeHttpClient(*http, SystemClock(), [] { return 0.0; },
                                     {.config = {.server = server.Url("")}});
  fakes::MemoryLog log;
  Reflector reflector({*client, SystemClock(), [] { return 0.0; }, log}, {.resource = kPods});
  Lines changes;
  reflector.OnChange([&](const Change& change) { changes.Add(NameOf(change.object()).name); });
  const std::jthread running([&](std::stop_token stop) { reflector.Run(stop); });
  ASSERT_TRUE(fakes::Await([&] { return changes.All().size() == 5; }));
  EXPECT_EQ(changes.All(), (std::vector<std::string>{"a", "b", "c", "d", "e"}));
  const std::vector<std::string> requests = asked.All();
  ASSERT_EQ(requests.size(), 5U);
  const std::vector<std::pair<std::string, std::string>> wanted = {
      {"0: GET /api/v1/pods?", "limit="},
      {"0: GET /api/v1/pods?", "continue=more"},
      {"1: GET /api/v1/pods?", "resourceVersion=5"},
      {"2: GET /api/v1/pods?", "resourceVersion=6"},
      {"3: GET /api/v1/pods?", "resourceVersion=7"}};
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_TRUE(requests[i].starts_with(wanted[i].first)) << requests[i];
    EXPECT_NE(requests[i].find(wanted[i].second), std::string::npos) << requests[i];
  }
}

// Otherwise a user who creates a few dozen very large pods would block every list of pods.
TEST(ReflectorOverHttp, OversizedPageIsRequestedWithFewerItems) {
  Lines asked;
  fakes::RawServer server([&asked](fakes::RawConnection& connection, int) {
    const std::string request = connection.ReadRequest();
    const std::string query =
        request.substr(0, request.find(" HTTP/")).substr(request.find('?') + 1);
    asked.Add(query);
    const std::string pod = fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":"{}"}})",
                                        asked.All().size(), std::string(600, 'x'));
    if (query == "limit=1") {
      connection.Write(RawResponse(200, Page(pod, 5, "more")));
    } else if (query == "limit=1&continue=more") {
      connection.Write(RawResponse(200, Page(pod, 5, "")));
    } else if (query.starts_with("limit=")) {
      connection.Write(RawResponse(200, Page(pod + "," + pod, 5, "")));
    } else {
      connection.Write(kStream);
      connection.BlockUntilStop();
    }
  });
  const auto http = *http::MakeClient({});
  const auto client =
      MakeHttpClient(*http, SystemClock(), [] { return 0.0; },
                     {.config = {.server = server.Url("")}, .response_bytes_max = 1'000});
  fakes::MemoryLog log;
  Reflector reflector({*client, SystemClock(), [] { return 0.0; }, log},
                      {.resource = kPods, .page_items = 8});
  const std::jthread running([&](std::stop_token stop) { reflector.Run(stop); });
  ASSERT_TRUE(fakes::Await([&] { return reflector.store().HasSynced(); }));
  EXPECT_EQ(reflector.store().size(), 2U);
  std::vector<std::string> lists = asked.All();
  std::erase_if(lists, [](const std::string& query) { return !query.starts_with("limit="); });
  EXPECT_EQ(lists, (std::vector<std::string>{"limit=8", "limit=1", "limit=2&continue=more",
                                             "limit=1&continue=more"}));
}

}  // namespace
}  // namespace cachewarm::kube

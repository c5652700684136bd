// SPDX-License-Identifier: Apache-2.0
// bench_download client URL     one GET by lib/http; discards the bytes and prints their number
// bench_download socket URL     the same over a bare socket
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/http/client.h"
#include "tests/bench/download/socket.h"

namespace cachewarm::bench {
namespace {

class CountingSink : public http::BodySink {
 public:
  absl::Status Write(std::string_view bytes) override {
    count_ += bytes.size();
    return absl::OkStatus();
  }
  uint64_t count() const { return count_; }

 private:
  uint64_t count_ = 0;
};

absl::StatusOr<uint64_t> DownloadByClient(const std::string& url) {
  http::PrepareProcess();
  CW_ASSIGN_OR_RETURN(const auto client, http::MakeClient({}));
  CountingSink sink;
  CW_ASSIGN_OR_RETURN(const http::Response response, client->Stream({.url = url}, sink, {}));
  CW_RETURN_IF_ERROR(http::StatusOf(response));
  return sink.count();
}

int Main(const std::vector<std::string>& words) {
  if (words.size() != 2 || (words[0] != "client" && words[0] != "socket")) {
    fmt::print(stderr, "usage: bench_download client|socket URL\n");
    return 2;
  }
  const auto bytes = words[0] == "client" ? DownloadByClient(words[1]) : DownloadBySocket(words[1]);
  if (!bytes.ok()) {
    fmt::print(stderr, "bench_download: {}\n", Message(bytes.status()));
    return 1;
  }
  fmt::print("{}\n", *bytes);
  return 0;
}

}  // namespace
}  // namespace cachewarm::bench

int main(int count, char** words) {
  return cachewarm::bench::Main({words + 1, words + count});
}

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "agent/metrics.h"
#include "agent/remote/remote_entries.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/resp/reply.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::agent {

inline constexpr char kFxKey[] = "pt2:fx-graph-v1::fabc:c1";
inline constexpr char kValue[] = R"({"data": "gASV", "time_taken_ms": 1500})";

// A request as redis-py sends it.
inline std::string Request(const std::vector<std::string>& words) {
  std::string request = resp::ArrayHeader(words.size());
  for (const std::string& word : words) {
    request += resp::BulkString(word);
  }
  return request;
}

// A blocking client of a Unix socket. Reads give up after ten seconds.
class RespClient {
 public:
  explicit RespClient(const std::string& path) : RespClient(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    is_connected_ =
        ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  // Takes a connected socket.
  explicit RespClient(int socket) : socket_(socket), is_connected_(true) {
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }

  bool is_connected() const { return is_connected_; }
  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) {
        return;
      }
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }
  // Returns the next `size` bytes; fewer if the connection ends.
  std::string Receive(size_t size) {
    std::string bytes(size, '\0');
    size_t received = 0;
    while (received < size) {
      const ssize_t count = ::recv(socket_.get(), bytes.data() + received, size - received, 0);
      if (count <= 0) {
        break;
      }
      received += static_cast<size_t>(count);
    }
    bytes.resize(received);
    return bytes;
  }
  // Sends a request and expects exactly this reply.
  void Expect(const std::vector<std::string>& request, const std::string& reply) {
    Send(Request(request));
    EXPECT_EQ(Receive(reply.size()), reply);
  }
  // Returns true once the server has closed the connection.
  bool IsClosed() {
    char byte = 0;
    return ::recv(socket_.get(), &byte, 1, 0) == 0;
  }

 private:
  fs::Fd socket_;
  bool is_connected_ = false;
};

// A root with one tree, and the metrics of an agent.
class RemoteFixture : public ::testing::Test {
 protected:
  static constexpr char kTree[] = ".gen/tree-1";

  RemoteFixture() {
    EXPECT_TRUE(root_.MakeDirs(kTree, 0777).ok());
    EXPECT_TRUE(root_.MakeDir(".state", 0700).ok());
  }

  RemoteEntryLimits Limits() const { return {.free_bytes_min = 0}; }
  std::string Folder(const std::string& tree = kTree) const {
    return folder_ / (tree + "/" + std::string(kRemoteFolder));
  }
  std::string SocketOf(const std::string& tree = kTree) const {
    return Folder(tree) + "/" + std::string(kRemoteSocket);
  }
  // Returns the value of a metric; 0 if it has no such series.
  double Metric(const std::string& series) const {
    const std::string text = "\n" + registry_->Serialize();
    const size_t at = text.find("\n" + series + " ");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + series.size() + 2));
  }
  double Requests(const std::string& cache, const std::string& result) const {
    return Metric(
        fmt::format("cachewarm_redis_requests_total{{cache=\"{}\",result=\"{}\"}}", cache, result));
  }

  TempDir folder_;
  fs::Dir root_ = folder_.Open();
  std::unique_ptr<metrics::Registry> registry_ = metrics::MakeRegistry();
  Metrics metrics_{*registry_, "test"};
};

}  // namespace cachewarm::agent

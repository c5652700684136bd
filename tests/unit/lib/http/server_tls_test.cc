// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "lib/base/status.h"
#include "lib/http/client.h"
#include "lib/http/server.h"
#include "tests/fakes/authority.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::http {
namespace {

std::string ReadAll(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A plain TCP peer.
class RawPeer {
 public:
  explicit RawPeer(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~RawPeer() { close(fd_); }

  void Say(std::string_view text) { send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  // Returns true if the server closes the connection within 20 s, cleanly or not.
  bool IsClosed() {
    char bytes[4096];
    ssize_t count = 0;
    while ((count = recv(fd_, bytes, sizeof bytes, 0)) > 0) {
    }
    return count == 0 || errno == ECONNRESET;
  }

 private:
  int fd_;
};

class ServerTls : public testing::Test {
 protected:
  static void SetUpTestSuite() { PrepareProcess(); }

  absl::Status Show(const fakes::Authority& authority) {
    const std::string leaf = authority.Issue("server", "IP:127.0.0.1");
    return identity_->Use(ReadAll(leaf + ".crt"), ReadAll(leaf + ".key"));
  }

  void Start(ServerOptions options = {}) {
    options.address = "127.0.0.1";
    options.identity = identity_;
    auto server =
        StartServer(options, {{"/length", [](const ServerRequest& request) {
                                 return ServerResponse{.body = std::to_string(request.body.size())};
                               }}});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // Uses a new connection.
  absl::StatusOr<Response> Post(const fakes::Authority& trusted, const std::string& body = "",
                                const Headers& headers = {}) {
    const auto client = MakeClient({.tls = {.ca_file = trusted.ca()}});
    return (*client)->Send(
        {.method = Method::kPost,
         .url = "https://127.0.0.1:" + std::to_string(server_->port()) + "/length",
         .headers = headers,
         .body = body},
        {});
  }

  TempDir folder_;
  fakes::Authority trusted_{folder_.path(), "trusted"};
  fakes::Authority other_{folder_.path(), "other"};
  std::shared_ptr<ServerIdentity> identity_ = std::make_shared<ServerIdentity>();
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTls, AnswersClientThatTrustsItsAuthority) {
  ASSERT_TRUE(Show(trusted_).ok());
  Start();
  const auto response = Post(trusted_, std::string(100'000, 'x'));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "100000");
}

TEST_F(ServerTls, UntrustingClientDoesNotAffectOthers) {
  ASSERT_TRUE(Show(trusted_).ok());
  Start();
  EXPECT_TRUE(absl::IsUnavailable(Post(other_).status()));
  EXPECT_TRUE(Post(trusted_).ok());
}

TEST_F(ServerTls, ConnectionServesSeveralRequests) {
  ASSERT_TRUE(Show(trusted_).ok());
  Start({.connections_max = 1});
  const auto client = MakeClient({.tls = {.ca_file = trusted_.ca()}});
  for (int i = 0; i < 5; ++i) {
    const auto response =
        (*client)->Send({.method = Method::kPost,
                         .url = "https://127.0.0.1:" + std::to_string(server_->port()) + "/length",
                         .body = "abc"},
                        {});
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->body, "3");
  }
}

TEST_F(ServerTls, ClosesPlainTextConnection) {
  ASSERT_TRUE(Show(trusted_).ok());
  Start();
  RawPeer peer(server_->port());
  peer.Say("GET /length HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(peer.IsClosed());
  EXPECT_TRUE(Post(trusted_).ok());
}

TEST_F(ServerTls, ClosesPeerWithoutHandshake) {
  ASSERT_TRUE(Show(trusted_).ok());
  Start({.request_timeout = Duration(100), .idle_timeout = Duration(3'600'000)});
  RawPeer silent(server_->port());
  RawPeer slow(server_->port());
  slow.Say("\x16\x03\x01");
  EXPECT_TRUE(Post(trusted_).ok());
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_TRUE(slow.IsClosed());
}

TEST_F(ServerTls, StopDoesNotWaitForHandshake) {
  ASSERT_TRUE(Show(trusted_).ok());
  Start({.request_timeout = Duration(3'600'000)});
  RawPeer silent(server_->port());
  EXPECT_TRUE(Post(trusted_).ok());
  server_->Stop();
  EXPECT_TRUE(silent.IsClosed());
}

TEST_F(ServerTls, RejectsBodiesAndHeadersOverTheLimit) {
  ASSERT_TRUE(Show(trusted_).ok());
  Start({.header_bytes_max = 2048, .body_bytes_max = 1000});
  const auto large = Post(trusted_, std::string(1001, 'x'));
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_EQ(large->status, 413);
  const auto wordy = Post(trusted_, "", {{"X-Long", std::string(3000, 'x')}});
  ASSERT_TRUE(wordy.ok()) << wordy.status();
  EXPECT_EQ(wordy->status, 431);
  EXPECT_EQ(Post(trusted_, std::string(1000, 'x'))->status, 200);
}

TEST_F(ServerTls, NewCertificateAppliesToNewConnections) {
  ASSERT_TRUE(Show(trusted_).ok());
  Start();
  ASSERT_TRUE(Post(trusted_).ok());
  ASSERT_TRUE(Show(other_).ok());
  EXPECT_TRUE(Post(other_).ok());
  EXPECT_FALSE(Post(trusted_).ok());
}

TEST_F(ServerTls, ClosesConnectionsUntilCertificateIsSet) {
  Start();
  EXPECT_FALSE(Post(trusted_).ok());
  ASSERT_TRUE(Show(trusted_).ok());
  EXPECT_TRUE(Post(trusted_).ok());
}

TEST_F(ServerTls, RejectedCertificateKeepsThePreviousOne) {
  ASSERT_TRUE(Show(trusted_).ok());
  Start();
  const std::string leaf = trusted_.Issue("leaf", "IP:127.0.0.1");
  const std::string another = trusted_.Issue("another", "IP:127.0.0.1");
  const std::string certificate = ReadAll(leaf + ".crt");
  EXPECT_EQ(Message(identity_->Use("", "")).find("certificate"), 0U);
  EXPECT_EQ(Message(identity_->Use("text", ReadAll(leaf + ".key"))).find("certificate"), 0U);
  EXPECT_EQ(Message(identity_->Use(certificate, "")).find("key"), 0U);
  EXPECT_EQ(Message(identity_->Use(certificate, ReadAll(another + ".key"))).find("key"), 0U);
  EXPECT_TRUE(Post(trusted_).ok());
}

}  // namespace
}  // namespace cachewarm::http

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>

#include "lib/http/client.h"
#include "tests/fakes/authority.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/temp_dir.h"
#include "tests/fakes/tunnel_proxy.h"

namespace cachewarm::http {
namespace {

using fakes::Authority;
using fakes::RawConnection;
using fakes::RawResponse;
using fakes::RawServer;

std::string ReadAll(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

void Answer(RawConnection& connection, int) {
  while (!connection.ReadRequest().empty()) {
    connection.Write(RawResponse(200, "secret"));
  }
}

class ClientTls : public testing::Test {
 protected:
  static void SetUpTestSuite() { PrepareProcess(); }

  absl::StatusOr<Response> Get(const TlsOptions& tls, const std::string& url) {
    auto client = MakeClient({.tls = tls});
    return client.ok() ? (*client)->Send({.url = url}, {}) : client.status();
  }

  TempDir folder_;
  Authority trusted_{folder_.path(), "trusted"};
  Authority other_{folder_.path(), "other"};
  std::string leaf_ = trusted_.Issue("server", "IP:127.0.0.1");
};

TEST_F(ClientTls, TrustsAuthorityFromFileAndText) {
  RawServer server(Answer, {.certificate_file = leaf_ + ".crt", .key_file = leaf_ + ".key"});
  for (const TlsOptions& tls :
       {TlsOptions{.ca_file = trusted_.ca()}, TlsOptions{.ca_pem = ReadAll(trusted_.ca())}}) {
    const auto response = Get(tls, server.Url("/"));
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->body, "secret");
  }
}

TEST_F(ClientTls, RejectsServerOfOtherAuthority) {
  RawServer server(Answer, {.certificate_file = leaf_ + ".crt", .key_file = leaf_ + ".key"});
  for (const TlsOptions& tls : {TlsOptions{.ca_file = other_.ca()}, TlsOptions{}}) {
    const auto response = Get(tls, server.Url("/"));
    EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable) << response.status();
  }
}

TEST_F(ClientTls, RejectsWrongHostName) {
  const std::string elsewhere = trusted_.Issue("elsewhere", "IP:127.0.0.2,DNS:elsewhere.example");
  RawServer server(Answer,
                   {.certificate_file = elsewhere + ".crt", .key_file = elsewhere + ".key"});
  EXPECT_EQ(Get({.ca_file = trusted_.ca()}, server.Url("/")).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(ClientTls, ServerNameReplacesTheHostOfTheUrl) {
  const std::string named = trusted_.Issue("named", "DNS:api.internal,IP:127.0.0.2");
  RawServer server(Answer, {.certificate_file = named + ".crt", .key_file = named + ".key"});
  const auto status_with = [&](const std::string& name) {
    return Get({.ca_file = trusted_.ca(), .server_name = name}, server.Url("/")).status();
  };
  EXPECT_TRUE(status_with("api.internal").ok()) << status_with("api.internal");
  EXPECT_TRUE(status_with("127.0.0.2").ok()) << status_with("127.0.0.2");
  for (const char* other : {"other.internal", "127.0.0.1", "internal", "named"}) {
    EXPECT_EQ(status_with(other).code(), absl::StatusCode::kUnavailable) << other;
  }
  EXPECT_FALSE(Get({.ca_file = other_.ca(), .server_name = "api.internal"}, server.Url("/")).ok())
      << "the authority is still verified";
  RawServer matching(Answer, {.certificate_file = leaf_ + ".crt", .key_file = leaf_ + ".key"});
  EXPECT_FALSE(
      Get({.ca_file = trusted_.ca(), .server_name = "api.internal"}, matching.Url("/")).ok())
      << "the host of the URL does not count";
}

TEST_F(ClientTls, RequestsTheServerNameBySni) {
  const std::string named = trusted_.Issue("sni", "DNS:api.internal");
  RawServer server(Answer, {.certificate_file = named + ".crt", .key_file = named + ".key"});
  const fakes::TunnelProxy proxy(server.port());
  const auto client = *MakeClient({.tls = {.ca_file = trusted_.ca(), .server_name = "api.internal"},
                                   .proxy = {.https = "http://" + proxy.address()}});
  const auto response = client->Send({.url = "https://outside.test/"}, {});
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(proxy.first_bytes().size(), 1U);
  EXPECT_NE(proxy.first_bytes()[0].find("api.internal"), std::string::npos);
  EXPECT_EQ(proxy.first_bytes()[0].find("outside.test"), std::string::npos);
}

TEST_F(ClientTls, SkipVerificationAcceptsAnyCertificate) {
  const std::string elsewhere = other_.Issue("elsewhere", "DNS:elsewhere.example");
  RawServer server(Answer,
                   {.certificate_file = elsewhere + ".crt", .key_file = elsewhere + ".key"});
  EXPECT_FALSE(Get({.ca_file = trusted_.ca()}, server.Url("/")).ok());
  const auto response = Get({.skip_verification = true}, server.Url("/"));
  EXPECT_TRUE(response.ok()) << response.status();
}

TEST_F(ClientTls, SendsClientCertificate) {
  const std::string client = trusted_.Issue("client", "DNS:client");
  RawServer server(Answer, {.certificate_file = leaf_ + ".crt",
                            .key_file = leaf_ + ".key",
                            .client_ca_file = trusted_.ca()});
  const auto shown = Get(
      {.ca_file = trusted_.ca(), .certificate_file = client + ".crt", .key_file = client + ".key"},
      server.Url("/"));
  ASSERT_TRUE(shown.ok()) << shown.status();
  const auto as_text = Get({.ca_file = trusted_.ca(),
                            .certificate_pem = ReadAll(client + ".crt"),
                            .key_pem = ReadAll(client + ".key")},
                           server.Url("/"));
  EXPECT_TRUE(as_text.ok()) << as_text.status();
  EXPECT_FALSE(Get({.ca_file = trusted_.ca()}, server.Url("/")).ok());
}

TEST_F(ClientTls, RotatedAuthorityAppliesToNextConnection) {
  const std::string ca = folder_ / "rotating.crt";
  std::filesystem::copy_file(other_.ca(), ca);
  RawServer server(
      [](RawConnection& connection, int) {
        connection.ReadRequest();
        connection.Write(RawResponse(200, "secret", "Connection: close\r\n"));
      },
      {.certificate_file = leaf_ + ".crt", .key_file = leaf_ + ".key"});
  const auto client = *MakeClient({.tls = {.ca_file = ca}});
  EXPECT_FALSE(client->Send({.url = server.Url("/")}, {}).ok());
  std::filesystem::copy_file(trusted_.ca(), ca, std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(client->Send({.url = server.Url("/")}, {}).ok());
  std::ofstream(ca) << "half a rota";
  EXPECT_TRUE(client->Send({.url = server.Url("/")}, {}).ok()) << "the last valid content stays";
  std::filesystem::remove(ca);
  EXPECT_TRUE(client->Send({.url = server.Url("/")}, {}).ok());
}

TEST_F(ClientTls, MakeClientRejectsUnreadableFiles) {
  std::ofstream(folder_ / "noise") << "no PEM at all";
  const std::string other_leaf = trusted_.Issue("second", "DNS:second");
  const std::pair<TlsOptions, std::string> table[] = {
      {{.ca_file = folder_ / "missing"}, "ca_file"},
      {{.ca_file = folder_ / "noise"}, "CA"},
      {{.ca_pem = "noise"}, "CA"},
      {{.certificate_file = folder_ / "missing", .key_file = leaf_ + ".key"}, "certificate_file"},
      {{.certificate_file = folder_ / "noise", .key_file = leaf_ + ".key"}, "certificate"},
      {{.certificate_file = leaf_ + ".crt"}, "key"},
      {{.key_file = leaf_ + ".key"}, "key"},
      {{.certificate_file = leaf_ + ".crt", .key_file = other_leaf + ".key"}, "key"},
  };
  for (const auto& [tls, named] : table) {
    const auto client = MakeClient({.tls = tls});
    EXPECT_EQ(client.status().code(), absl::StatusCode::kInvalidArgument) << named;
    EXPECT_NE(client.status().message().find(named), std::string::npos) << client.status();
  }
}

TEST_F(ClientTls, PlainHttpServerIsUnavailable) {
  RawServer server(
      [](RawConnection& connection, int) { connection.Write(RawResponse(400, "plain only")); });
  const std::string url = "https" + server.Url("/").substr(4);
  EXPECT_EQ(Get({.ca_file = trusted_.ca()}, url).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ClientTls, CancelsInHandshakesAndBodiesLeakNothing) {
  RawServer server(
      [](RawConnection& connection, int) {
        while (!connection.ReadRequest().empty()) {
          connection.Write(RawResponse(200, std::string(100'000, 'x')));
        }
      },
      {.certificate_file = leaf_ + ".crt", .key_file = leaf_ + ".key"});
  const auto client = *MakeClient({.tls = {.ca_file = trusted_.ca()}});
  for (int i = 0; i < 60; ++i) {
    std::stop_source stop;
    std::jthread canceller([&, i] {
      std::this_thread::sleep_for(std::chrono::microseconds(i * 500));
      stop.request_stop();
    });
    const auto response = client->Send({.url = server.Url("/")}, stop.get_token());
    EXPECT_TRUE(response.ok() || absl::IsCancelled(response.status())) << response.status();
  }
}

bool HandshakesFail() {
  RawServer server(
      [](RawConnection& connection, int) { connection.Write(RawResponse(400, "plain only")); });
  const auto client = *MakeClient({});
  for (int i = 0; i < 3; ++i) {
    const auto response = client->Send({.url = "https" + server.Url("/").substr(4)}, {});
    if (!absl::IsUnavailable(response.status())) {
      return false;
    }
  }
  return true;
}

// Exits normally, so that the leak check of a sanitizer build runs.
[[noreturn]] void FailHandshakesAndEnd() {
  PrepareProcess();
  std::exit(HandshakesFail() ? 0 : 1);
}

TEST(ClientTlsDeathTest, FailedHandshakesLeakNothing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(FailHandshakesAndEnd(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cachewarm::http

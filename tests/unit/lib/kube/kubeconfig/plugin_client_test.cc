// SPDX-License-Identifier: Apache-2.0
// Sends requests with the credentials of shell scripts to real servers.
#include "lib/kube/kubeconfig/plugin_client.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/kube/kubeconfig/exec_plugin.h"
#include "tests/fakes/authority.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/raw_server.h"
#include "tests/fakes/temp_dir.h"
#include "tests/fakes/tunnel_proxy.h"

namespace cachewarm::kube {
namespace {

using fakes::RawConnection;
using fakes::RawResponse;
using fakes::RawServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kVersion[] = "client.authentication.k8s.io/v1";

std::string Credential(const codec::Json& status) {
  return codec::DumpJson(
      {{"kind", "ExecCredential"}, {"apiVersion", kVersion}, {"status", status}});
}

// A server that records the bearer token of every request.
class TokenServer {
 public:
  // `accepts` decides about the answer: 200 or 401.
  explicit TokenServer(std::function<bool(const std::string& token)> accepts,
                       const fakes::RawServerOptions& options = {})
      : accepts_(std::move(accepts)),
        server_([this](RawConnection& connection, int) { Serve(connection); }, options) {}

  std::string url() const { return server_.Url("/"); }
  uint16_t port() const { return server_.port(); }
  int connections() const { return server_.connections(); }
  std::vector<std::string> tokens() const {
    const std::lock_guard lock(mutex_);
    return tokens_;
  }

 private:
  void Serve(RawConnection& connection) {
    for (std::string request = connection.ReadRequest(); !request.empty();
         request = connection.ReadRequest()) {
      const std::string field = "Bearer ";
      const size_t at = request.find(field);
      const std::string token =
          at == std::string::npos
              ? ""
              : request.substr(at + field.size(), request.find('\r', at) - at - field.size());
      {
        const std::lock_guard lock(mutex_);
        tokens_.push_back(token);
      }
      connection.Write(RawResponse(accepts_(token) ? 200 : 401, "body"));
    }
  }

  std::function<bool(const std::string&)> accepts_;
  mutable std::mutex mutex_;
  std::vector<std::string> tokens_;
  RawServer server_;
};

bool AcceptAll(const std::string&) {
  return true;
}

class Collector final : public http::BodySink {
 public:
  absl::Status Write(std::string_view bytes) override {
    body += bytes;
    return absl::OkStatus();
  }
  std::string body;
};

class PluginClientTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { http::PrepareProcess(); }

  PluginClientTest() {
    folder_.Write("login",
                  "#!/bin/sh\necho run >> \"$FOLDER/runs\"\n"
                  "n=$(wc -l < \"$FOLDER/runs\")\n"
                  "if [ -e \"$FOLDER/output$n\" ]; then cat \"$FOLDER/output$n\"\n"
                  "else cat \"$FOLDER/output\"; fi\n");
    ::chmod((folder_ / "login").c_str(), 0755);
    auto plugin = std::make_shared<ExecPlugin>();
    plugin->user = "dev";
    plugin->api_version = kVersion;
    plugin->command = folder_ / "login";
    plugin->environment = {{"FOLDER", folder_.path()}};
    config_.plugin = plugin;
  }

  // Sets the output of every run, or of run number `run`.
  void Print(const codec::Json& status, const std::string& run = "") {
    folder_.Write("output" + run, Credential(status));
  }
  int64_t runs() const {
    std::ifstream file(folder_ / "runs");
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  }
  http::Client& client() {
    if (client_ == nullptr) {
      auto made =
          MakePluginHttpClient(config_, {}, {.environment = {{"PATH", "/usr/bin:/bin"}}}, clock_);
      EXPECT_TRUE(made.ok()) << made.status();
      client_ = *std::move(made);
    }
    return *client_;
  }
  // Returns the code of the response; 0 and an error that status_ contains if there is none.
  int Get(const std::string& url) {
    const auto response = client().Send({.url = url}, {});
    status_ = response.status();
    return response.ok() ? response->status : 0;
  }
  std::string ReadFile(const std::string& path) const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  codec::Json Certificate(const std::string& leaf) const {
    return {{"clientCertificateData", ReadFile(leaf + ".crt")},
            {"clientKeyData", ReadFile(leaf + ".key")}};
  }

  TempDir folder_;
  fakes::FakeClock clock_;
  ClusterConfig config_;
  std::unique_ptr<http::Client> client_;
  absl::Status status_;
};

TEST_F(PluginClientTest, OneRunServesManyRequests) {
  TokenServer server(AcceptAll);
  Print({{"token", "abc"}});
  EXPECT_EQ(runs(), 0) << "no run before the first request";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Get(server.url()), 200) << status_;
    clock_.Advance(std::chrono::hours(24));
  }
  EXPECT_THAT(server.tokens(), ElementsAre("abc", "abc", "abc"));
  EXPECT_EQ(runs(), 1);
}

TEST_F(PluginClientTest, RunsAgainAfterTheExpiry) {
  TokenServer server(AcceptAll);
  Print({{"token", "one"}, {"expirationTimestamp", "2026-01-01T01:00:00Z"}}, "1");
  Print({{"token", "two"}});
  EXPECT_EQ(Get(server.url()), 200);
  clock_.Advance(std::chrono::minutes(59));
  EXPECT_EQ(Get(server.url()), 200);
  clock_.Advance(std::chrono::minutes(1));
  EXPECT_EQ(Get(server.url()), 200);
  EXPECT_THAT(server.tokens(), ElementsAre("one", "one", "two"));
  EXPECT_EQ(runs(), 2);
}

TEST_F(PluginClientTest, RejectedTokenIsReplacedOnce) {
  TokenServer server([](const std::string& token) { return token == "two"; });
  Print({{"token", "one"}}, "1");
  Print({{"token", "two"}});
  EXPECT_EQ(Get(server.url()), 200) << status_;
  EXPECT_THAT(server.tokens(), ElementsAre("one", "two"));
  EXPECT_EQ(Get(server.url()), 200);
  EXPECT_EQ(runs(), 2);
}

TEST_F(PluginClientTest, ServerThatRejectsEverythingCausesOneFurtherRun) {
  TokenServer server([](const std::string&) { return false; });
  Print({{"token", "one"}}, "1");
  Print({{"token", "two"}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Get(server.url()), 401);
  }
  EXPECT_THAT(server.tokens(), ElementsAre("one", "two", "two", "two"));
  EXPECT_EQ(runs(), 2);
}

TEST_F(PluginClientTest, SameTokenIsNotSentAgain) {
  TokenServer server([](const std::string&) { return false; });
  Print({{"token", "one"}});
  EXPECT_EQ(Get(server.url()), 401);
  EXPECT_THAT(server.tokens(), ElementsAre("one"));
}

TEST_F(PluginClientTest, AcceptedTokenThatIsRevokedIsReplaced) {
  std::string valid = "one";
  std::mutex mutex;
  TokenServer server([&](const std::string& token) {
    const std::lock_guard lock(mutex);
    return token == valid;
  });
  for (const char* run : {"1", "2", "3"}) {
    const std::string token = std::array{"one", "two", "three"}[static_cast<size_t>(*run - '1')];
    Print({{"token", token}}, run);
  }
  for (const char* token : {"one", "two", "three"}) {
    {
      const std::lock_guard lock(mutex);
      valid = token;
    }
    EXPECT_EQ(Get(server.url()), 200) << token;
  }
  EXPECT_EQ(runs(), 3);
}

TEST_F(PluginClientTest, StreamsAlsoReplaceTheToken) {
  TokenServer server([](const std::string& token) { return token == "two"; });
  Print({{"token", "one"}}, "1");
  Print({{"token", "two"}});
  Collector sink;
  const auto response = client().Stream({.url = server.url()}, sink, {});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(sink.body, "body");
}

TEST_F(PluginClientTest, FailureOfThePluginSendsNoRequest) {
  TokenServer server(AcceptAll);
  EXPECT_EQ(Get(server.url()), 0);
  EXPECT_THAT(Message(status_), HasSubstr("exit code 1"));
  folder_.Write("output", "<html>");
  EXPECT_EQ(Get(server.url()), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(status_));
  EXPECT_THAT(Message(status_), HasSubstr("of user \"dev\": its output is not usable"));
  EXPECT_THAT(server.tokens(), IsEmpty());
}

TEST_F(PluginClientTest, TokenOfTheKubeconfigWins) {
  TokenServer server(AcceptAll);
  config_.token = "static";  // kube::HttpClient sends it
  EXPECT_EQ(Get(server.url()), 200);
  EXPECT_EQ(runs(), 0);
}

class PluginCertificateTest : public PluginClientTest {
 protected:
  PluginCertificateTest() { config_.tls.ca_file = authority_.ca(); }

  fakes::Authority authority_{folder_.path(), "local"};
  fakes::Authority other_{folder_.path(), "other"};
  std::string leaf_ = authority_.Issue("server", "IP:127.0.0.1");
  TokenServer server_{AcceptAll,
                      {.certificate_file = leaf_ + ".crt",
                       .key_file = leaf_ + ".key",
                       .client_ca_file = authority_.ca()}};
};

TEST_F(PluginCertificateTest, CertificateOfThePluginIsSentAndReplaced) {
  codec::Json first = Certificate(authority_.Issue("first", "DNS:first"));
  first["expirationTimestamp"] = "2026-01-01T01:00:00Z";
  Print(first, "1");
  Print(Certificate(authority_.Issue("second", "DNS:second")));
  EXPECT_EQ(Get(server_.url()), 200) << status_;
  EXPECT_EQ(Get(server_.url()), 200) << status_;
  EXPECT_EQ(server_.connections(), 1);
  clock_.Advance(std::chrono::hours(2));
  EXPECT_EQ(Get(server_.url()), 200) << status_;
  EXPECT_EQ(server_.connections(), 2) << "a connection keeps the certificate it began with";
  EXPECT_EQ(runs(), 2);
}

TEST_F(PluginCertificateTest, ServerRejectsCertificateOfAnotherAuthority) {
  Print(Certificate(other_.Issue("client", "DNS:client")));
  EXPECT_EQ(Get(server_.url()), 0);
  EXPECT_TRUE(absl::IsUnavailable(status_)) << status_;
}

TEST_F(PluginCertificateTest, UnusableCertificateIsAnErrorOfThePlugin) {
  codec::Json mixed = Certificate(authority_.Issue("one", "DNS:one"));
  mixed["clientKeyData"] = Certificate(authority_.Issue("two", "DNS:two"))["clientKeyData"];
  for (const codec::Json& status :
       {mixed, codec::Json{{"clientCertificateData", "noise"}, {"clientKeyData", "noise"}}}) {
    client_ = nullptr;
    Print(status);
    EXPECT_EQ(Get(server_.url()), 0);
    EXPECT_THAT(Message(status_), HasSubstr("of user \"dev\": its certificate is not usable"));
  }
}

TEST_F(PluginCertificateTest, CertificateOfTheKubeconfigWins) {
  const std::string own = authority_.Issue("own", "DNS:own");
  config_.tls.certificate_file = own + ".crt";
  config_.tls.key_file = own + ".key";
  codec::Json status = Certificate(other_.Issue("client", "DNS:client"));
  status["token"] = "abc";
  Print(status);
  EXPECT_EQ(Get(server_.url()), 200) << status_;
  EXPECT_THAT(server_.tokens(), ElementsAre("abc"));
}

TEST_F(PluginClientTest, ProxyOfTheClusterServesLoopbackToo) {
  TokenServer server(AcceptAll);
  const fakes::Authority authority(folder_.path(), "local");
  const std::string leaf = authority.Issue("server", "DNS:api.internal");
  TokenServer secure(AcceptAll, {.certificate_file = leaf + ".crt", .key_file = leaf + ".key"});
  const fakes::TunnelProxy proxy(secure.port());
  config_.plugin = nullptr;
  config_.proxy = "http://" + proxy.address();
  config_.tls.ca_file = authority.ca();
  config_.tls.server_name = "api.internal";
  EXPECT_EQ(Get("https://127.0.0.1:6443/"), 200) << status_;
  EXPECT_THAT(proxy.asked(), ElementsAre("CONNECT 127.0.0.1:6443 HTTP/1.1"));
}

}  // namespace
}  // namespace cachewarm::kube

// SPDX-License-Identifier: Apache-2.0
#include "lib/http/proxy.h"

#include <mutex>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/http/client.h"
#include "tests/fakes/raw_server.h"

namespace cachewarm::http {
namespace {

using fakes::RawConnection;
using fakes::RawResponse;
using fakes::RawServer;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Proxy, ParsesHostAndPort) {
  EXPECT_EQ(ParseProxy("http://proxy.local:3128")->Origin(), "http://proxy.local:3128");
  EXPECT_EQ(ParseProxy("http://proxy.local:3128/")->Origin(), "http://proxy.local:3128");
  EXPECT_EQ(ParseProxy("proxy.local:3128")->Origin(), "http://proxy.local:3128");
  EXPECT_EQ(ParseProxy("http://10.0.0.1")->Origin(), "http://10.0.0.1:80");
  const struct {
    std::string text;
    std::string says;
  } bad[] = {{"https://proxy.local", "TLS is not supported"}, {"socks5://proxy.local", "malformed"},
             {"http://proxy.local/path", "it has a path"},    {"http://", "malformed"},
             {"http://proxy.local:99999", "malformed"},       {"a b", "malformed"}};
  for (const auto& c : bad) {
    const auto proxy = ParseProxy(c.text);
    EXPECT_TRUE(absl::IsInvalidArgument(proxy.status())) << c.text;
    EXPECT_THAT(Message(proxy.status()), HasSubstr(c.says)) << c.text;
  }
}

TEST(Proxy, RejectsPasswordWithoutPrintingIt) {
  for (const std::string text :
       {"http://user:secret@proxy.local:3128", "user:secret@proxy.local"}) {
    const auto proxy = ParseProxy(text);
    EXPECT_TRUE(absl::IsInvalidArgument(proxy.status())) << text;
    EXPECT_THAT(Message(proxy.status()), HasSubstr("password"));
    EXPECT_THAT(Message(proxy.status()), Not(HasSubstr("secret")));
  }
}

TEST(ProxyRules, MatchNoProxyConventions) {
  const struct {
    std::string no_proxy;
    std::string url;
    bool direct;
  } cases[] = {
      {"", "https://registry.test", false},
      {"", "https://localhost", true},
      {"", "https://127.0.0.5:5000", true},
      {"", "https://[::1]:5000", true},
      {"*", "https://registry.test", true},
      {"registry.test", "https://registry.test", true},
      {"registry.test", "https://REGISTRY.test:5000", true},
      {"Registry.Test", "https://a.b.registry.test", true},
      {"registry.test", "https://myregistry.test", false},
      {".registry.test", "https://a.registry.test", true},
      {".registry.test", "https://registry.test", false},
      {"*.registry.test", "https://a.registry.test", true},
      {"*.registry.test", "https://registry.test", false},
      {"registry.test:5000", "https://registry.test:5000", true},
      {"registry.test:5000", "https://registry.test", false},
      {"other.test, registry.test", "https://registry.test", true},
      {"other.test,,registry.test,", "https://registry.test", true},
      {"10.0.0.7", "https://10.0.0.7:5000", true},
      {"10.0.0.7", "https://10.0.0.70", false},
      {"10.0.0.7:5000", "https://10.0.0.7:5000", true},
      {"10.0.0.7:5000", "https://10.0.0.7:5001", false},
      {"10.0.0.0/8", "https://10.200.3.4", true},
      {"10.0.0.0/8", "https://11.0.0.1", false},
      {"10.96.0.0/12", "https://10.111.255.255", true},
      {"10.96.0.0/12", "https://10.112.0.0", false},
      {"10.0.0.0/8", "https://registry.test", false},
      {"0.0.0.0/0", "https://1.2.3.4", true},
      {"0.0.0.0/0", "https://[fd00::1]", false},
      {"fd00::/8", "https://[fd12::1]", true},
      {"fd00::/8", "https://[fe80::1]", false},
      {"fd00::1", "https://[fd00:0::1]:5000", true},
      {"[fd00::1]", "https://[fd00::1]:5000", true},
      {"[fd00::1]:5000", "https://[fd00::1]", false},
  };
  for (const auto& c : cases) {
    const auto rules = ProxyRules::Make({.https = "proxy.local:3128", .no_proxy = c.no_proxy});
    ASSERT_TRUE(rules.ok()) << rules.status();
    EXPECT_EQ(!rules->For(*Url::Parse(c.url)).has_value(), c.direct) << c.no_proxy << " " << c.url;
  }
}

TEST(ProxyRules, EachSchemeHasItsOwnProxy) {
  const auto rules = ProxyRules::Make({.https = "tls.local", .http = "plain.local"});
  EXPECT_EQ(rules->For(*Url::Parse("https://registry.test"))->host, "tls.local");
  EXPECT_EQ(rules->For(*Url::Parse("http://registry.test"))->host, "plain.local");
  const auto one = ProxyRules::Make({.https = "tls.local"});
  EXPECT_EQ(one->For(*Url::Parse("http://registry.test")), std::nullopt);
}

TEST(ProxyRules, ErrorsQuoteMalformedEntries) {
  for (const std::string entry : {"10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "name/8", "fd00::/129",
                                  "a:b", "http://a", "*."}) {
    const auto rules = ProxyRules::Make({.no_proxy = "good.test," + entry});
    EXPECT_TRUE(absl::IsInvalidArgument(rules.status())) << entry;
    EXPECT_THAT(Message(rules.status()), HasSubstr(entry));
  }
}

TEST(ProxyRules, ProxyForEveryUrlHasNoExceptions) {
  const auto rules = ProxyRules::Make({.https = "other.test",
                                       .http = "other.test",
                                       .no_proxy = "*",
                                       .always = "http://proxy.local:3128"});
  ASSERT_TRUE(rules.ok()) << rules.status();
  for (const char* url : {"https://api.test", "http://api.test", "https://127.0.0.1:6443"}) {
    const auto proxy = rules->For(*Url::Parse(url));
    ASSERT_TRUE(proxy.has_value()) << url;
    EXPECT_EQ(proxy->Origin(), "http://proxy.local:3128") << url;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ProxyRules::Make({.always = "https://p"}).status()));
}

// A proxy that answers every request itself and records the requests.
class RecordingProxy {
 public:
  explicit RecordingProxy(std::string answer)
      : answer_(std::move(answer)), server_([this](RawConnection& connection, int) {
          for (std::string asked = connection.ReadRequest(); !asked.empty();
               asked = connection.ReadRequest()) {
            {
              const std::lock_guard lock(mutex_);
              asked_.push_back(asked);
            }
            connection.Write(answer_);
          }
        }) {}
  std::string address() const { return "127.0.0.1:" + std::to_string(server_.port()); }
  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  const std::string answer_;
  std::mutex mutex_;
  std::vector<std::string> asked_;
  RawServer server_;
};

TEST(ClientWithProxy, SendsPlainHttpThroughProxy) {
  RecordingProxy proxy(RawResponse(200, "through the proxy"));
  const auto client = MakeClient({.plain_http_hosts = {"registry.test"},
                                  .proxy = {.http = proxy.address(), .no_proxy = "direct.test"}});
  ASSERT_TRUE(client.ok()) << client.status();
  const auto response = (*client)->Send({.url = "http://registry.test:5000/v2/"}, {});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "through the proxy");
  ASSERT_EQ(proxy.asked().size(), 1U);
  EXPECT_THAT(proxy.asked()[0], StartsWith("GET http://registry.test:5000/v2/ HTTP/1.1"));
}

TEST(ClientWithProxy, OpensTunnelForHttps) {
  RecordingProxy proxy(RawResponse(403, "not for you"));
  const auto client = MakeClient({.proxy = {.https = proxy.address()}});
  ASSERT_TRUE(client.ok()) << client.status();
  const auto response = (*client)->Send({.url = "https://registry.test/v2/"}, {});
  EXPECT_TRUE(absl::IsUnavailable(response.status())) << response.status();
  ASSERT_EQ(proxy.asked().size(), 1U);
  EXPECT_THAT(proxy.asked()[0], StartsWith("CONNECT registry.test:443 HTTP/1.1"));
  // The proxy does not see the request.
  EXPECT_THAT(proxy.asked()[0], Not(HasSubstr("/v2/")));
}

TEST(ClientWithProxy, ConnectsToLoopbackDirectly) {
  RecordingProxy proxy(RawResponse(403, ""));
  RecordingProxy server(RawResponse(200, "direct"));
  const auto client = MakeClient({.proxy = {.http = proxy.address()}});
  const auto response = (*client)->Send({.url = "http://" + server.address() + "/"}, {});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->body, "direct");
  EXPECT_TRUE(proxy.asked().empty());
}

TEST(ClientWithProxy, MakeClientRejectsInvalidProxy) {
  EXPECT_TRUE(absl::IsInvalidArgument(MakeClient({.proxy = {.https = "https://p"}}).status()));
}

}  // namespace
}  // namespace cachewarm::http

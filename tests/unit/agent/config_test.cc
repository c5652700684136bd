// SPDX-License-Identifier: Apache-2.0
#include "agent/config.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/fakes/source_dir.h"

namespace cachewarm::agent {
namespace {

constexpr char kOciStore[] = "--store=oci://registry.local/base";
struct Given {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> files;
};

absl::StatusOr<CommandLine> Parse(const Given& given) {
  return ParseConfig({.arguments = given.arguments,
                      .environment = [&](const std::string& name) -> std::optional<std::string> {
                        const auto found = given.environment.find(name);
                        return found == given.environment.end()
                                   ? std::nullopt
                                   : std::optional<std::string>(found->second);
                      },
                      .read_file = [&](const std::string& path) -> absl::StatusOr<std::string> {
                        const auto found = given.files.find(path);
                        if (found == given.files.end()) {
                          return absl::NotFoundError(path + ": cannot be read");
                        }
                        return found->second;
                      },
                      .host_name = "host-1",
                      .version = "1.2.3"});
}

const std::string kStore = "--store=layout:///srv/bundles";

TEST(Config, HasDefaultsThatWorkInAPod) {
  const auto parsed = Parse({.arguments = {kStore}});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->config.node_name, "host-1");
  EXPECT_EQ(parsed->config.root, "/var/lib/cachewarm");
  EXPECT_EQ(parsed->config.listen_address, "0.0.0.0");
  EXPECT_EQ(parsed->config.listen_port, 8080);
  EXPECT_EQ(parsed->config.byte_limit, 0);
  EXPECT_EQ(parsed->config.disk.limit, 10);
  EXPECT_EQ(parsed->config.disk.reserve_bytes, 12);
  EXPECT_EQ(parsed->config.disk.reserve_inodes, 6);
  EXPECT_EQ(parsed->config.transfer_threads, 2);
  EXPECT_EQ(parsed->config.scrub_seconds, 3600);
  EXPECT_FALSE(parsed->config.redis_endpoint);
  EXPECT_EQ(parsed->config.limits.entries_max, 200'000);
  EXPECT_EQ(parsed->config.limits.ratio_max, 400);
  EXPECT_EQ(parsed->config.node_facts, "");
}

TEST(Config, ReadsEveryKeyOfTheFile) {
  const auto parsed = Parse({.arguments = {"--config", "/c.yaml"}, .files = {{"/c.yaml", R"(
store: oci://10.100.0.1:5000/cachewarm
root: /data/cachewarm/
byteLimit: 1000000000000
reserve: {bytesPercent: 20, inodesPercent: 10}
logLevel: debug
leaderElect: true
workers: 4
transfer:
  threads: 4
scrub:
  intervalSeconds: 86400
redis:
  endpoint: true
limits:
  files: 1000
  fileBytes: 17179869184
  bytes: 137438953472
  ratio: 1000
nodeFacts: /etc/cachewarm-node/facts.yaml
signature:
  publicKeyFile: /etc/key.pub
  privateKeyFile: /etc/key.pem
registry:
  insecure: ["10.100.0.1:5000", "registry.local:80"]
  caFile: /etc/ca.crt
  clientCertificateFile: /etc/tls.crt
  clientKeyFile: /etc/tls.key
  authFile: /etc/auth.json
  mirrors: [mirror.local:5000/cache, "10.0.0.7"]
  maxConnections: 8
  proxy: http://proxy.local:3128
  bytesPerSecond: 50000000
)"}}});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Config& config = parsed->config;
  EXPECT_EQ(config.store.url, "oci://10.100.0.1:5000/cachewarm");
  EXPECT_EQ(config.store.insecure_hosts,
            (std::vector<std::string>{"10.100.0.1:5000", "registry.local:80"}));
  EXPECT_EQ(config.store.ca_file, "/etc/ca.crt");
  EXPECT_EQ(config.store.certificate_file, "/etc/tls.crt");
  EXPECT_EQ(config.store.key_file, "/etc/tls.key");
  EXPECT_EQ(config.keys.public_key_file, "/etc/key.pub");
  EXPECT_EQ(config.keys.private_key_file, "/etc/key.pem");
  EXPECT_EQ(config.store.auth_file, "/etc/auth.json");
  EXPECT_EQ(config.store.mirrors,
            (std::vector<std::string>{"mirror.local:5000/cache", "10.0.0.7"}));
  EXPECT_EQ(config.store.connections_max, 8);
  EXPECT_EQ(config.store.proxy.https, "http://proxy.local:3128");
  EXPECT_EQ(config.store.proxy.http, "http://proxy.local:3128");
  EXPECT_EQ(config.store.bytes_per_second, 50'000'000);
  EXPECT_EQ(config.root, "/data/cachewarm");
  EXPECT_EQ(config.byte_limit, 1'000'000'000'000);
  EXPECT_EQ(config.disk.limit, 0) << "bytes replace the default share";
  EXPECT_EQ(config.disk.reserve_bytes, 20);
  EXPECT_EQ(config.disk.reserve_inodes, 10);
  EXPECT_EQ(config.node_facts, "/etc/cachewarm-node/facts.yaml");
  EXPECT_FALSE(config.node_facts_must_exist);
  EXPECT_EQ(config.log_level, LogLevel::kDebug);
  EXPECT_EQ(config.workers, 3) << "workers is the operator's";
  EXPECT_EQ(config.transfer_threads, 4);
  EXPECT_EQ(config.scrub_seconds, 86400);
  EXPECT_TRUE(config.redis_endpoint);
  EXPECT_EQ(config.limits.entries_max, 1000);
  EXPECT_EQ(config.limits.file_bytes_max, 16LL << 30);
  EXPECT_EQ(config.limits.total_bytes_max, 128LL << 30);
  EXPECT_EQ(config.limits.ratio_max, 1000);
}

TEST(Config, ByteLimitIsANumberOrAShareOfTheFileSystem) {
  const auto parse = [](const std::string& limit) {
    return Parse({.arguments = {kStore, "--byte-limit=" + limit}});
  };
  EXPECT_EQ(parse("25%")->config.disk.limit, 25);
  EXPECT_EQ(parse("0")->config.disk.limit, 0) << "no limit";
  EXPECT_EQ(parse("0")->config.byte_limit, 0);
  for (const char* wrong : {"0%", "101%", "%", "-1", "1.5%", "10 %"}) {
    const auto parsed = parse(wrong);
    ASSERT_FALSE(parsed.ok()) << wrong;
    EXPECT_NE(parsed.status().message().find("--byte-limit"), std::string::npos);
  }
}

TEST(Config, DriverRootsAreAbsolutePaths) {
  const auto parse = [](const std::string& roots) {
    return Parse({.arguments = {kStore, "--driver-roots=" + roots}});
  };
  const auto parsed = parse("/run/nvidia/driver/,/opt/gpu");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->config.driver_roots,
            (std::vector<std::string>{"/run/nvidia/driver", "/opt/gpu"}));
  EXPECT_FALSE(parse("/opt/gpu,relative").ok());
  EXPECT_FALSE(parse("/opt/../etc").ok());
}

TEST(Config, AcceptsShippedConfiguration) {
  std::ifstream in(fakes::SourceDir() + "/manifests/install.yaml");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const size_t begin = text.find("config.yaml: |\n");
  ASSERT_NE(begin, std::string::npos);
  std::string file;
  std::string line;
  std::istringstream lines(text.substr(begin + 15));
  while (std::getline(lines, line) && line.starts_with("    ")) {
    file += line.substr(4) + "\n";
  }
  const auto parsed = Parse({.arguments = {"--config=/c.yaml"}, .files = {{"/c.yaml", file}}});
  EXPECT_TRUE(parsed.ok()) << parsed.status();
}

TEST(Config, FlagOverridesEnvironmentOverridesFile) {
  Given given{.arguments = {"--config=/c", "--root=/flag"},
              .environment = {{"CACHEWARM_ROOT", "/environment"}},
              .files = {{"/c", "store: layout:///s\nroot: /file\n"}}};
  EXPECT_EQ(Parse(given)->config.root, "/flag");
  given.arguments = {"--config=/c"};
  EXPECT_EQ(Parse(given)->config.root, "/environment");
  given.environment.clear();
  EXPECT_EQ(Parse(given)->config.root, "/file");
}

TEST(Config, ProxySettingOverridesEnvironment) {
  Given given{.arguments = {kOciStore},
              .environment = {{"HTTPS_PROXY", "http://tls.local:1"},
                              {"https_proxy", "http://lower.local:1"},
                              {"http_proxy", "http://plain.local:1"},
                              {"NO_PROXY", "10.0.0.0/8,.svc"}}};
  const auto usual = Parse(given);
  ASSERT_TRUE(usual.ok()) << usual.status();
  EXPECT_EQ(usual->config.store.proxy.https, "http://tls.local:1");
  EXPECT_EQ(usual->config.store.proxy.http, "http://plain.local:1");
  EXPECT_EQ(usual->config.store.proxy.no_proxy, "10.0.0.0/8,.svc");
  given.arguments.push_back("--registry-proxy=http://own.local:1");
  const auto own = Parse(given);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->config.store.proxy.https, "http://own.local:1");
  EXPECT_EQ(own->config.store.proxy.http, "http://own.local:1");
  EXPECT_EQ(own->config.store.proxy.no_proxy, "10.0.0.0/8,.svc");
}

TEST(Config, NodeFactsSetForThisNodeMustExist) {
  EXPECT_TRUE(Parse({.arguments = {kStore, "--node-facts=/f"}})->config.node_facts_must_exist);
  EXPECT_TRUE(Parse({.arguments = {kStore}, .environment = {{"CACHEWARM_NODE_FACTS", "/f"}}})
                  ->config.node_facts_must_exist);
}

TEST(Config, RejectsInvalidSettingsByName) {
  struct Case {
    Given given;
    std::string named;
  };
  const std::vector<Case> cases = {
      {{.arguments = {}}, "--store"},
      {{.arguments = {"--store"}}, "--store: requires a value"},
      {{.arguments = {"--store=ftp://x"}}, "--store"},
      {{.arguments = {kStore, "--rot=/x"}}, "--rot"},
      {{.arguments = {kStore, "positional"}}, "positional"},
      {{.arguments = {kStore, "--root=relative"}}, "--root"},
      {{.arguments = {kStore, "--root=/"}}, "--root"},
      {{.arguments = {kStore, "--root=/a/../b"}}, "--root"},
      {{.arguments = {kStore, "--byte-limit=-1"}}, "--byte-limit"},
      {{.arguments = {kStore, "--byte-limit=10GB"}}, "--byte-limit"},
      {{.arguments = {kStore, "--listen=8080"}}, "--listen"},
      {{.arguments = {kOciStore, "--registry-client-key-file=/k"}}, "both or none"},
      {{.arguments = {kOciStore, "--registry-client-certificate-file=/c"}}, "both or none"},
      {{.arguments = {kStore, "--signature-public-key-file=k"}}, "--signature-public-key-file"},
      {{.arguments = {kOciStore, "--registry-mirrors=https://m"}}, "--registry-mirrors"},
      {{.arguments = {kOciStore, "--registry-mirrors=a,user@b"}}, "user@b"},
      {{.arguments = {kStore, "--registry-mirrors=m.local"}}, "registry.mirrors"},
      {{.arguments = {kOciStore, "--registry-proxy=https://p"}}, "--registry-proxy"},
      {{.arguments = {kOciStore, "--registry-proxy=http://u:pw@p"}}, "--registry-proxy"},
      {{.arguments = {kOciStore}, .environment = {{"HTTPS_PROXY", "socks5://p"}}}, "HTTPS_PROXY"},
      {{.arguments = {kOciStore}, .environment = {{"NO_PROXY", "10.0.0.0/40"}}}, "10.0.0.0/40"},
      {{.arguments = {kOciStore, "--registry-max-connections=1025"}}, "--registry-max-connections"},
      {{.arguments = {kOciStore, "--registry-bytes-per-second=100"}}, "at least 65536"},
      {{.arguments = {kStore, "--listen=:99999"}}, "--listen"},
      {{.arguments = {kStore, "--workers=0"}}, "--workers"},
      {{.arguments = {kStore, "--transfer-threads=17"}}, "--transfer-threads"},
      {{.arguments = {kStore, "--scrub-interval-seconds=10"}}, "at least 60"},
      {{.arguments = {kStore, "--scrub-interval-seconds=-1"}}, "--scrub-interval-seconds"},
      {{.arguments = {kStore, "--limit-files=200001"}}, "--limit-files"},
      {{.arguments = {kStore, "--limit-ratio=0"}}, "--limit-ratio"},
      {{.arguments = {kStore, "--log-level=loud"}}, "--log-level"},
      {{.arguments = {kStore, "--node-name=Node A"}}, "--node-name"},
      {{.arguments = {kStore}, .environment = {{"CACHEWARM_BYTE_LIMIT", "x"}}},
       "CACHEWARM_BYTE_LIMIT"},
      {{.arguments = {"--config=/none"}}, "/none"},
      {{.arguments = {"--config=/c"}, .files = {{"/c", "stoer: x"}}}, "stoer"},
      {{.arguments = {"--config=/c"}, .files = {{"/c", "registry: {insecur: []}"}}},
       "registry.insecur"},
      {{.arguments = {"--config=/c"}, .files = {{"/c", "root: [1, 2]"}}}, "root"},
      {{.arguments = {"--config=/c"}, .files = {{"/c", "- a\n- b"}}}, "/c"},
      {{.arguments = {"--config=/c"}, .files = {{"/c", "a: [unclosed"}}}, "/c"},
      {{.arguments = {"--config=/c"}, .files = {{"/c", "byteLimit: 1.5\nstore: layout:///s"}}},
       "byteLimit"},
  };
  for (const Case& each : cases) {
    const absl::Status status = Parse(each.given).status();
    EXPECT_FALSE(status.ok()) << each.named;
    EXPECT_NE(std::string(status.message()).find(each.named), std::string::npos) << status;
  }
}

TEST(Config, NumbersAndListsHaveLimits) {
  const auto hosts = [](int count) {
    std::string list = "h0";
    for (int i = 1; i < count; ++i) {
      list += ",h" + std::to_string(i);
    }
    return list;
  };
  const struct {
    std::string flag;
    std::vector<std::string> good;
    std::vector<std::string> bad;
  } cases[] = {
      {"--workers=", {"1", "16"}, {"0", "17"}},
      {"--transfer-threads=", {"1", "16"}, {"0", "17"}},
      {"--byte-limit=",
       {"0", "9223372036854775807", "1%", "100%"},
       {"-1", "9223372036854775808", "101%"}},
      {"--reserve-bytes-percent=", {"0", "100"}, {"-1", "101", "12%"}},
      {"--reserve-inodes-percent=", {"0", "100"}, {"-1", "101", "6%"}},
      {"--scrub-interval-seconds=", {"0", "60", "2592000"}, {"1", "59", "2592001"}},
      {"--limit-files=", {"1", "200000"}, {"0", "200001"}},
      {"--limit-file-bytes=", {"1", "9223372036854775807"}, {"0"}},
      {"--limit-bytes=", {"1", "9223372036854775807"}, {"0"}},
      {"--limit-ratio=", {"1", "1000000"}, {"0", "1000001"}},
      {"--registry-max-connections=", {"0", "1024"}, {"-1", "1025"}},
      {"--registry-bytes-per-second=", {"0", "65536"}, {"-1", "1", "65535"}},
      {"--registry-insecure=", {"", hosts(64)}, {hosts(65)}},
      {"--registry-mirrors=", {hosts(1), hosts(64)}, {hosts(65)}},
  };
  for (const auto& each : cases) {
    for (const std::string& value : each.good) {
      const auto parsed = Parse({.arguments = {kOciStore, each.flag + value}});
      EXPECT_TRUE(parsed.ok()) << each.flag << value << parsed.status();
    }
    for (const std::string& value : each.bad) {
      const auto parsed = Parse({.arguments = {kOciStore, each.flag + value}});
      EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << each.flag << value;
    }
  }
}

TEST(Config, PrintNodeFactsNeedsNoStore) {
  const auto parsed = Parse({.arguments = {"--print-node-facts"}});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->print_node_facts);
}

TEST(Config, HelpAndVersionOverrideAllElse) {
  EXPECT_EQ(*Parse({.arguments = {"--version"}})->print, "cachewarm-agent 1.2.3\n");
  EXPECT_EQ(*Parse({.arguments = {"--root=relative", "--help"}})->print, HelpText());
}

TEST(Config, IgnoresEmptyHosts) {
  const auto parsed = Parse({.arguments = {kStore, "--registry-insecure=a:1,,b:2,"}});
  EXPECT_EQ(parsed->config.store.insecure_hosts, (std::vector<std::string>{"a:1", "b:2"}));
}

}  // namespace
}  // namespace cachewarm::agent

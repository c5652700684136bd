// SPDX-License-Identifier: Apache-2.0
#include "operator/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lib/base/status.h"

namespace cachewarm::op {
namespace {

using ::testing::HasSubstr;

struct Given {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> files;
  std::string host_name = "operator-0";
};

absl::StatusOr<CommandLine> Parse(const Given& setup) {
  return ParseConfig({
      .arguments = setup.arguments,
      .environment = [&](const std::string& name) -> std::optional<std::string> {
        const auto found = setup.environment.find(name);
        return found == setup.environment.end() ? std::nullopt : std::optional(found->second);
      },
      .read_file = [&](const std::string& path) -> absl::StatusOr<std::string> {
        const auto found = setup.files.find(path);
        if (found == setup.files.end()) {
          return absl::NotFoundError(path + ": no such file");
        }
        return found->second;
      },
      .host_name = setup.host_name,
      .version = "9.8.7",
  });
}

TEST(OperatorConfig, DefaultsNeedNothing) {
  const auto parsed = Parse({});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->config.listen_port, 8080);
  EXPECT_EQ(parsed->config.root, "/var/lib/cachewarm");
  EXPECT_TRUE(parsed->config.leader_elect);
  EXPECT_EQ(parsed->config.identity, "operator-0");
  EXPECT_EQ(parsed->config.ns, "cachewarm-system");
  EXPECT_FALSE(parsed->print.has_value());
}

TEST(OperatorConfig, FlagOverridesEnvironmentOverridesFile) {
  Given setup{.arguments = {"--config", "/c.yaml", "--log-level=debug"},
              .environment = {{"CACHEWARM_LOG_LEVEL", "error"}, {"CACHEWARM_ROOT", "/from/env"}},
              .files = {{"/c.yaml", "logLevel: warning\nroot: /from/file\nworkers: 5\n"}}};
  const auto parsed = Parse(setup);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->config.log_level, LogLevel::kDebug);
  EXPECT_EQ(parsed->config.root, "/from/env");
  EXPECT_EQ(parsed->config.workers, 5);
}

TEST(OperatorConfig, ReadsFileSharedWithAgents) {
  const auto parsed = Parse({.arguments = {"--config=/c.yaml"},
                             .files = {{"/c.yaml",
                                        "store: oci://registry:5000/warm\n"
                                        "root: /data/cachewarm/\n"
                                        "registry:\n  insecure: [\"registry:5000\"]\n"
                                        "signature:\n  publicKeyFile: /k.pub\n"
                                        "agentWorkers: 4\ntransfer:\n  threads: 4\n"
                                        "scrub:\n  intervalSeconds: 60\n"
                                        "redis:\n  endpoint: true\n"
                                        "byteLimit: 1000\nleaderElect: false\n"}}});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->config.root, "/data/cachewarm");
  EXPECT_FALSE(parsed->config.leader_elect);
}

TEST(OperatorConfig, FileSetsNodeSettings) {
  const auto defaults = Parse({});
  ASSERT_TRUE(defaults.ok());
  EXPECT_EQ(defaults->config.builder_jobs_max, 8);
  EXPECT_EQ(defaults->config.fetch_nodes_max, 32);
  EXPECT_EQ(defaults->config.harvest_minutes, 30);
  EXPECT_FALSE(defaults->config.fresh_nodes_tainted);
  const auto parsed =
      Parse({.arguments = {"--config=/c.yaml"},
             .files = {{"/c.yaml",
                        "fetch:\n  nodesMax: 7\nharvest:\n  intervalMinutes: 5\n"
                        "freshNodes:\n  tainted: true\nbuilders:\n  jobsMax: 3\n"}}});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->config.builder_jobs_max, 3);
  EXPECT_EQ(parsed->config.fetch_nodes_max, 7);
  EXPECT_EQ(parsed->config.harvest_minutes, 5);
  EXPECT_TRUE(parsed->config.fresh_nodes_tainted);
  const auto none = Parse({.arguments = {"--fetch-nodes-max=0"}});
  EXPECT_THAT(Message(none.status()), HasSubstr("--fetch-nodes-max"));
  const auto always = Parse({.arguments = {"--harvest-interval-minutes=0"}});
  EXPECT_THAT(Message(always.status()), HasSubstr("--harvest-interval-minutes"));
}

TEST(OperatorConfig, EmptyFileChangesNothing) {
  const auto parsed =
      Parse({.environment = {{"CACHEWARM_CONFIG", "/c.yaml"}}, .files = {{"/c.yaml", ""}}});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->config.workers, 4);
}

TEST(OperatorConfig, SwitchNeedsNoValue) {
  const auto parsed = Parse({.arguments = {"--leader-elect", "--listen", "[::1]:0"}});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->config.leader_elect);
  EXPECT_EQ(parsed->config.listen_address, "::1");
  EXPECT_EQ(parsed->config.listen_port, 0);
}

TEST(OperatorConfig, ErrorsNameSettingAndRemedy) {
  struct Case {
    std::string name;
    Given setup;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"unknown flag",
       {.arguments = {"--foo=1"}},
       "--foo: unknown option; --help lists all options"},
      {"near flag", {.arguments = {"--rot=/x"}}, "--rot: unknown option; did you mean --root?"},
      {"stray word", {.arguments = {"start"}}, "unknown argument \"start\""},
      {"no value", {.arguments = {"--root"}}, "--root: requires a value: --root VALUE"},
      {"relative root", {.arguments = {"--root=var"}}, "--root: \"var\": expected an absolute"},
      {"climbing root", {.arguments = {"--root=/a/../b"}}, "--root"},
      {"port too large", {.arguments = {"--listen=:70000"}}, "0 to 65535"},
      {"no port", {.arguments = {"--listen=localhost"}}, "ADDRESS:PORT"},
      {"bad bool", {.environment = {{"CACHEWARM_LEADER_ELECT", "yes"}}}, "CACHEWARM_LEADER_ELECT"},
      {"bad level", {.arguments = {"--log-level=loud"}}, "--log-level"},
      {"bad namespace", {.arguments = {"--namespace=A b"}}, "--namespace"},
      {"too many workers", {.arguments = {"--workers=99"}}, "1 to 16"},
      {"missing file", {.arguments = {"--config=/none"}}, "/none: no such file"},
      {"unknown key",
       {.arguments = {"--config=/c"}, .files = {{"/c", "storage: x\n"}}},
       "/c: unknown key \"storage\""},
      {"broken yaml", {.arguments = {"--config=/c"}, .files = {{"/c", "a: [\n"}}}, "/c: "},
      {"list", {.arguments = {"--config=/c"}, .files = {{"/c", "- a\n"}}}, "a map of settings"},
      {"nested",
       {.arguments = {"--config=/c"}, .files = {{"/c", "root: {a: b}\n"}}},
       "/c: root: must be one plain value"},
      {"bad key value",
       {.arguments = {"--config=/c"}, .files = {{"/c", "workers: many\n"}}},
       "workers: \"many\""},
      {"nameless host", {.host_name = ""}, "--identity"},
  };
  for (const Case& test : cases) {
    const auto parsed = Parse(test.setup);
    ASSERT_FALSE(parsed.ok()) << test.name;
    EXPECT_THAT(Message(parsed.status()), HasSubstr(test.expected)) << test.name;
  }
}

TEST(OperatorConfig, NumbersAndTextsHaveLimits) {
  const std::string longest(253, 'i');
  const struct {
    std::string flag;
    std::vector<std::string> good;
    std::vector<std::string> bad;
  } cases[] = {{"--workers=", {"1", "16"}, {"0", "17", "2x"}},
               {"--builder-jobs-max=", {"0", "1000"}, {"-1", "1001"}},
               {"--fetch-nodes-max=", {"1", "100000"}, {"0", "100001"}},
               {"--identity=", {"i", longest}, {"", longest + "i"}}};
  for (const auto& each : cases) {
    for (const std::string& value : each.good) {
      const auto parsed = Parse({.arguments = {each.flag + value}});
      EXPECT_TRUE(parsed.ok()) << each.flag << value << parsed.status();
    }
    for (const std::string& value : each.bad) {
      const auto parsed = Parse({.arguments = {each.flag + value}});
      EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << each.flag << value;
    }
  }
}

TEST(OperatorConfig, HelpNamesEverySettingWithItsDefault) {
  const auto parsed = Parse({.arguments = {"--help", "--log-level=loud"}});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  for (const char* text :
       {"--config=FILE", "--kubeconfig", "--listen", "--root", "--leader-elect", "--log-level",
        "--namespace", "CACHEWARM_LISTEN", "key leaderElect", "0.0.0.0:8080", "--version"}) {
    EXPECT_THAT(*parsed->print, HasSubstr(text));
  }
}

TEST(OperatorConfig, VersionPrintsBuildVersion) {
  const auto parsed = Parse({.arguments = {"--version"}});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed->print, "cachewarm-operator 9.8.7\n");
}

}  // namespace
}  // namespace cachewarm::op

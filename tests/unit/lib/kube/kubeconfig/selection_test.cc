// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/kubeconfig/selection.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Fields = std::vector<std::pair<std::string, std::string>>;

class SelectionTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    folder_.Write(name, text);
    return folder_ / name;
  }
  absl::StatusOr<ClusterConfig> Select(const std::string& text,
                                       const KubeconfigSelection& selection = {}) {
    const auto kubeconfig =
        LoadKubeconfig({.file = Write("config", text), .variable = {}, .home = {}});
    return kubeconfig.ok() ? SelectCluster(*kubeconfig, selection) : kubeconfig.status();
  }
  // Selects from a kubeconfig with one cluster and one user of these fields.
  absl::StatusOr<ClusterConfig> Read(const std::string& cluster, const std::string& user,
                                     const KubeconfigSelection& selection = {}) {
    return Select(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
        "contexts: [{name: here, context: {cluster: c, user: u, namespace: team}}]\n"
        "clusters: [{name: c, cluster: {" +
            cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n",
        selection);
  }
  void ExpectRefused(const absl::StatusOr<ClusterConfig>& config, const std::string& says) {
    EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << says;
    EXPECT_THAT(Message(config.status()), HasSubstr(says));
  }

  TempDir folder_;
};

constexpr char kServer[] = "server: 'https://a'";

TEST_F(SelectionTest, ResolvesFilesAgainstTheFolder) {
  const auto config = Read("server: 'https://a:6443/', certificate-authority: pki/ca.crt",
                           "client-certificate: /abs/x.crt, client-key: y.key");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://a:6443");
  EXPECT_EQ(config->default_namespace, "team");
  EXPECT_EQ(config->tls.ca_file, folder_ / "pki/ca.crt");
  EXPECT_EQ(config->tls.certificate_file, "/abs/x.crt");
  EXPECT_EQ(config->tls.key_file, folder_ / "y.key");
  EXPECT_EQ(config->plugin, nullptr);
  EXPECT_EQ(config->proxy, "");
  EXPECT_EQ(config->headers.size(), 0U);
}

TEST_F(SelectionTest, InlineDataWins) {
  const auto config =
      Read("server: 'https://a', certificate-authority-data: Y2E=, certificate-authority: x",
           "client-certificate-data: Y2VydA==, client-key-data: a2V5");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tls.ca_pem, "ca");
  EXPECT_EQ(config->tls.ca_file, "");
  EXPECT_EQ(config->tls.certificate_pem, "cert");
  EXPECT_EQ(config->tls.key_pem, "key");
}

TEST_F(SelectionTest, TokenFileWinsOverToken) {
  EXPECT_EQ(Read(kServer, "token: abc")->token, "abc");
  const auto both = Read(kServer, "token: abc, tokenFile: t");
  EXPECT_EQ(both->token_file, folder_ / "t");
  EXPECT_EQ(both->token, "");
}

TEST_F(SelectionTest, TokenFileMustBeReadable) {
  const absl::Status missing = Read(kServer, "tokenFile: t").status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(Message(missing), HasSubstr("config: user.tokenFile: "));
  folder_.Write("t", "abc\n");
  EXPECT_EQ(Read(kServer, "tokenFile: t")->token_file, folder_ / "t");
}

TEST_F(SelectionTest, ReadsProxyAndVerificationOfTheCluster) {
  const auto config =
      Read(std::string(kServer) + ", tls-server-name: b, proxy-url: 'http://p:1'", "token: t");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tls.server_name, "b");
  EXPECT_FALSE(config->tls.skip_verification);
  EXPECT_EQ(config->proxy, "http://p:1");
  const auto insecure = Read(std::string(kServer) + ", insecure-skip-tls-verify: true", "");
  ASSERT_TRUE(insecure.ok()) << insecure.status();
  EXPECT_TRUE(insecure->tls.skip_verification);
}

TEST_F(SelectionTest, RejectsUnsupportedFieldsWithRemedy) {
  ExpectRefused(Read(kServer, "auth-provider: {name: gcp}"), "gke-gcloud-auth-plugin");
  ExpectRefused(Read(kServer, "auth-provider: {name: azure}"), "kubelogin convert-kubeconfig");
  ExpectRefused(Read(kServer, "auth-provider: {name: oidc}"), "kubectl-oidc_login");
  ExpectRefused(Read(kServer, "auth-provider: {name: openstack}"), "field exec");
  ExpectRefused(Read(kServer, "auth-provider: {name: openstack}"), "\"openstack\"");
  ExpectRefused(Read(kServer, "username: a, password: b"), "user.username");
  ExpectRefused(Read(kServer, "token: 'a b'"), "user.token");
  ExpectRefused(Read(kServer, "as-groups: [a]"), "user.as: is required");
  ExpectRefused(Read(kServer, "as: \"a\\nb\""), "Impersonate-User");
  const std::string server = std::string(kServer) + ", ";
  ExpectRefused(Read(server + "proxy-url: 'socks5://p'", ""), "cluster.proxy-url");
  ExpectRefused(Read(server + "proxy-url: 'https://p'", ""), "cluster.proxy-url");
  ExpectRefused(
      Read(server + "insecure-skip-tls-verify: true, certificate-authority-data: Y2E=", ""),
      "cluster.insecure-skip-tls-verify");
}

TEST_F(SelectionTest, ErrorsNameTheFile) {
  ExpectRefused(Read("server: nonsense", ""), "cluster.server");
  ExpectRefused(Read("certificate-authority-data: Y2E=", ""), "cluster.server");
  for (const char* text : {"", "a: b", "current-context: x", "current-context: x\ncontexts: 3",
                           "current-context: x\ncontexts: [{name: x, context: {cluster: y}}]"}) {
    ExpectRefused(Select(text), folder_ / "config");
  }
  ExpectRefused(Select("current-context: x", {.context = "other"}),
                "--context: no entry of contexts is named \"other\"");
}

TEST_F(SelectionTest, FlagsReplaceContextClusterAndUser) {
  const std::string text =
      "current-context: one\n"
      "contexts: [{name: one, context: {cluster: c1, user: u1, namespace: n1}},\n"
      "  {name: two, context: {cluster: c2, user: u2}}]\n"
      "clusters: [{name: c1, cluster: {server: 'https://c1'}},\n"
      "  {name: c2, cluster: {server: 'https://c2'}}]\n"
      "users: [{name: u1, user: {token: t1}}, {name: u2, user: {token: t2}}]\n";
  const struct {
    KubeconfigSelection selection;
    std::string server;
    std::string token;
    std::string ns;
  } cases[] = {
      {{}, "https://c1", "t1", "n1"},
      {{.context = "two"}, "https://c2", "t2", "default"},
      {{.cluster = "c2"}, "https://c2", "t1", "n1"},
      {{.user = "u2"}, "https://c1", "t2", "n1"},
      {{.context = "two", .cluster = "c1", .user = "u1"}, "https://c1", "t1", "default"},
  };
  for (const auto& each : cases) {
    const auto config = Select(text, each.selection);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->server, each.server);
    EXPECT_EQ(config->token, each.token);
    EXPECT_EQ(config->default_namespace, each.ns);
  }
  const std::string without_current = text.substr(text.find('\n') + 1);
  ExpectRefused(Select(without_current), "current-context: is not set");
  ExpectRefused(Select(without_current, {.cluster = "c1"}), "current-context: is not set");
  EXPECT_EQ(Select(without_current, {.cluster = "c2", .user = "u1"})->server, "https://c2");
  ExpectRefused(Select(text, {.cluster = "c3"}), "--cluster: no entry of clusters");
  ExpectRefused(Select(text, {.user = "u3"}), "--user: no entry of users");
}

TEST_F(SelectionTest, ContextWithoutUserHasNoCredentials) {
  const auto config = Select(
      "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
      "clusters: [{name: c, cluster: {server: 'https://c'}}]\nusers: [{name: '', user: {token: "
      "t}}]");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->token, "");
}

TEST_F(SelectionTest, ImpersonationBecomesHeaders) {
  const std::string user =
      "as: alice, as-uid: '7', as-groups: [x, y], "
      "as-user-extra: {'Example.org/Scopes': [a, b]}";
  const auto config = Read(kServer, user);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(Fields(config->headers.begin(), config->headers.end()),
              ElementsAre(Pair("Impersonate-User", "alice"), Pair("Impersonate-Uid", "7"),
                          Pair("Impersonate-Group", "x"), Pair("Impersonate-Group", "y"),
                          Pair("Impersonate-Extra-example.org%2Fscopes", "a"),
                          Pair("Impersonate-Extra-example.org%2Fscopes", "b")));
  const auto flags = Read(kServer, "token: t", {.as = "bob", .as_groups = {"g"}});
  EXPECT_THAT(Fields(flags->headers.begin(), flags->headers.end()),
              ElementsAre(Pair("Impersonate-User", "bob"), Pair("Impersonate-Group", "g")));
  ExpectRefused(Read(kServer, "token: t", {.as_groups = {"g"}}), "--as-group");
}

std::string Exec(const std::string& version, const std::string& more = "") {
  return "exec: {apiVersion: client.authentication.k8s.io/" + version + ", command: login" + more +
         "}";
}

TEST_F(SelectionTest, InteractiveModeHasADefaultOnlyInV1beta1) {
  using Input = ExecPlugin::Input;
  EXPECT_EQ(Read(kServer, Exec("v1beta1"))->plugin->input, Input::kIfTerminal);
  const std::pair<std::string, Input> modes[] = {
      {"Never", Input::kNever}, {"IfAvailable", Input::kIfTerminal}, {"Always", Input::kAlways}};
  for (const auto& [mode, input] : modes) {
    for (const char* version : {"v1", "v1beta1"}) {
      const auto config = Read(kServer, Exec(version, ", interactiveMode: " + mode));
      ASSERT_TRUE(config.ok()) << config.status();
      EXPECT_EQ(config->plugin->input, input) << version << mode;
      EXPECT_EQ(config->plugin->user, "u");
    }
  }
  ExpectRefused(Read(kServer, Exec("v1")), "user.exec.interactiveMode");
  ExpectRefused(Read(kServer, Exec("v1beta1", ", interactiveMode: Often")),
                "user.exec.interactiveMode");
}

TEST_F(SelectionTest, RejectsUnusablePlugins) {
  for (const char* version : {"v1alpha1", "v2", ""}) {
    ExpectRefused(Read(kServer, Exec(version)), "user.exec.apiVersion");
  }
  ExpectRefused(Read(kServer, "exec: {apiVersion: v1, command: login}"), "user.exec.apiVersion");
  ExpectRefused(Read(kServer, "exec: {apiVersion: client.authentication.k8s.io/v1beta1}"),
                "user.exec.command");
}

TEST_F(SelectionTest, PluginReceivesClusterOnlyOnRequest) {
  folder_.Write("ca.crt", "authority");
  const std::string cluster =
      "server: 'https://a', certificate-authority: ca.crt, tls-server-name: b, "
      "proxy-url: 'http://p:1', extensions: [{name: client.authentication.k8s.io/exec, "
      "extension: {audience: x}}]";
  EXPECT_EQ(Read(cluster, Exec("v1beta1"))->plugin->cluster, "");
  const auto config = Read(cluster, Exec("v1beta1", ", provideClusterInfo: true"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*codec::ParseJson(config->plugin->cluster),
            *codec::ParseJson(R"({"server":"https://a","certificate-authority-data":)"
                              R"("YXV0aG9yaXR5","tls-server-name":"b","proxy-url":"http://p:1",)"
                              R"("config":{"audience":"x"}})"));
}

TEST_F(SelectionTest, DaemonsUseAFileOrTheServiceAccount) {
  EXPECT_EQ(FindConfig(folder_ / "missing", {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FindConfig("", {}).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Read(kServer, "token: t").ok());
  EXPECT_EQ(FindConfig(folder_ / "config", {})->token, "t");
}

TEST_F(SelectionTest, DaemonsRunNoPlugins) {
  ASSERT_TRUE(Read(kServer, Exec("v1beta1")).ok());
  ExpectRefused(FindConfig(folder_ / "config", {}), "user.exec: only the CLI runs");
}

}  // namespace
}  // namespace cachewarm::kube

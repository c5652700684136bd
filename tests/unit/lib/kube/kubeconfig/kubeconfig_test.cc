// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/kubeconfig/kubeconfig.h"

#include <filesystem>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class KubeconfigTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    folder_.Write(name, text);
    return folder_ / name;
  }
  // Loads the files that $KUBECONFIG names.
  static absl::StatusOr<Kubeconfig> Load(const std::string& variable) {
    return LoadKubeconfig({.file = {}, .variable = variable, .home = {}});
  }

  TempDir folder_;
};

TEST_F(KubeconfigTest, FirstDefinitionOfANameWinsAsAWhole) {
  const std::string one = Write("one",
                                "clusters: [{name: red, cluster: {server: 'https://one'}}]\n"
                                "users: [{name: red, user: {token: one}}]\n"
                                "contexts: [{name: red, context: {cluster: red}}]\n");
  const std::string two =
      Write("two",
            "clusters:\n"
            "- {name: red, cluster: {server: 'https://two', tls-server-name: two}}\n"
            "- {name: blue, cluster: {server: 'https://blue'}}\n"
            "users: [{name: red, user: {as: root, tokenFile: t}}, {name: blue, user: {token: b}}]\n"
            "contexts: [{name: red, context: {cluster: blue, user: blue, namespace: ns}},\n"
            "  {name: blue, context: {cluster: blue, user: blue, namespace: ns}}]\n");
  const auto merged = Load(one + ":" + two);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->clusters.size(), 2U);
  EXPECT_EQ(merged->clusters.at("red").server, "https://one");
  EXPECT_EQ(merged->clusters.at("red").tls_server_name, "") << "the second definition is discarded";
  EXPECT_EQ(merged->clusters.at("red").file, one);
  EXPECT_EQ(merged->clusters.at("blue").file, two);
  EXPECT_EQ(merged->users.at("red").token, "one");
  EXPECT_EQ(merged->users.at("red").token_file, "");
  EXPECT_EQ(merged->users.at("red").impersonation, Impersonation());
  EXPECT_EQ(merged->contexts.at("red").user, "");
  EXPECT_EQ(merged->contexts.at("red").ns, "");
  EXPECT_EQ(merged->contexts.at("blue").ns, "ns");
  EXPECT_EQ(Load(two + ":" + one)->clusters.at("red").server, "https://two");
}

TEST_F(KubeconfigTest, FirstCurrentContextThatIsSetWins) {
  const std::string none = Write("none", "kind: Config\ncurrent-context: ''\n");
  const std::string one = Write("one", "current-context: one\n");
  const std::string two = Write("two", "current-context: two\n");
  EXPECT_EQ(Load(none + ":" + one + ":" + two)->current_context, "one");
  EXPECT_EQ(Load(two + ":" + one)->current_context, "two");
  EXPECT_EQ(Load(none)->current_context, "");
}

TEST_F(KubeconfigTest, MissingAndEmptyFilesAreSkipped) {
  const std::string one = Write("one", "current-context: one\n");
  const std::string empty = Write("empty", "\n");
  const auto merged = Load(":" + (folder_ / "none") + "::" + empty + ":" + one + ":" + one + ":");
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_THAT(merged->files, ElementsAre(empty, one));
  EXPECT_THAT(merged->missing, ElementsAre(folder_ / "none"));
  EXPECT_EQ(merged->current_context, "one");
  EXPECT_THAT(Load(folder_ / "none")->files, IsEmpty());
}

TEST_F(KubeconfigTest, FlagPrecedesVariablePrecedesHome) {
  const std::string flag = Write("flag", "current-context: flag\n");
  const std::string variable = Write("variable", "current-context: variable\n");
  Write("home/.kube/config", "current-context: home\n");
  const std::string home = folder_ / "home";
  const auto current = [&](const KubeconfigPaths& paths) {
    return LoadKubeconfig(paths).value_or(Kubeconfig()).current_context;
  };
  EXPECT_EQ(current({.file = flag, .variable = variable, .home = home}), "flag");
  EXPECT_EQ(current({.file = {}, .variable = variable, .home = home}), "variable");
  EXPECT_EQ(current({.file = {}, .variable = {}, .home = home}), "home");
  EXPECT_EQ(current({.file = {}, .variable = folder_ / "none", .home = home}), "")
      << "a variable that is set replaces the file in the home directory";
  EXPECT_TRUE(LoadKubeconfig({.file = {}, .variable = {}, .home = {}})->files.empty());
  EXPECT_TRUE(absl::IsNotFound(
      LoadKubeconfig({.file = folder_ / "none", .variable = variable, .home = {}}).status()));
}

// A loop of links has the same code as a directory without permission, which root does not notice.
TEST_F(KubeconfigTest, UnreadableFileInTheHomeDirectoryIsSkipped) {
  const std::string path = folder_ / "home/.kube/config";
  std::filesystem::create_directories(folder_ / "home/.kube");
  std::filesystem::create_symlink(path, path);
  const auto implied = LoadKubeconfig({.file = {}, .variable = {}, .home = folder_ / "home"});
  ASSERT_TRUE(implied.ok()) << implied.status();
  EXPECT_THAT(implied->missing, ElementsAre(path));
  EXPECT_TRUE(absl::IsPermissionDenied(Load(path).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(
      LoadKubeconfig({.file = path, .variable = {}, .home = {}}).status()));
}

TEST_F(KubeconfigTest, RelativePathsStartAtTheFolderOfTheirFile) {
  const std::string text =
      "clusters: [{name: c, cluster: {certificate-authority: pki/ca.crt}}]\n"
      "users:\n"
      "- {name: u, user: {client-certificate: ./x.crt, client-key: ../y.key, tokenFile: t}}\n"
      "- {name: absolute, user: {client-certificate: /abs/x.crt, tokenFile: /abs/t}}\n"
      "- {name: near, user: {exec: {command: ./login}}}\n"
      "- {name: below, user: {exec: {command: bin/login}}}\n"
      "- {name: path, user: {exec: {command: login}}}\n";
  const std::string one = Write("a/one", text);
  const auto merged = Load(one);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->clusters.at("c").ca_file, folder_ / "a/pki/ca.crt");
  EXPECT_EQ(merged->users.at("u").certificate_file, folder_ / "a/x.crt");
  EXPECT_EQ(merged->users.at("u").key_file, folder_ / "y.key");
  EXPECT_EQ(merged->users.at("u").token_file, folder_ / "a/t");
  EXPECT_EQ(merged->users.at("absolute").certificate_file, "/abs/x.crt");
  EXPECT_EQ(merged->users.at("absolute").token_file, "/abs/t");
  EXPECT_EQ(merged->users.at("near").exec->command, folder_ / "a/login");
  EXPECT_EQ(merged->users.at("below").exec->command, folder_ / "a/bin/login");
  EXPECT_EQ(merged->users.at("path").exec->command, "login") << "to be found in PATH";

  Kubeconfig relative;
  ASSERT_TRUE(MergeKubeconfig(text, "config", relative).ok());
  EXPECT_EQ(relative.users.at("near").exec->command,
            (std::filesystem::current_path() / "login").string())
      << "never a name to be found in PATH";
}

TEST_F(KubeconfigTest, InlineDataReplacesPaths) {
  const auto merged = Load(
      Write("one",
            "clusters: [{name: c, cluster: {certificate-authority: x, "
            "certificate-authority-data: Y2E=}}]\n"
            "users: [{name: u, user: {client-certificate: x, client-certificate-data: Y2VydA==, "
            "client-key: y, client-key-data: a2V5}}]\n"));
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->clusters.at("c").ca_pem, "ca");
  EXPECT_EQ(merged->clusters.at("c").ca_file, "");
  EXPECT_EQ(merged->users.at("u").certificate_pem, "cert");
  EXPECT_EQ(merged->users.at("u").certificate_file, "");
  EXPECT_EQ(merged->users.at("u").key_pem, "key");
  EXPECT_EQ(merged->users.at("u").key_file, "");
}

TEST_F(KubeconfigTest, ReadsEveryField) {
  const auto merged = Load(Write("one", R"(
clusters:
- name: c
  cluster:
    server: https://a:6443
    tls-server-name: b
    proxy-url: http://p:1
    insecure-skip-tls-verify: true
    disable-compression: true
    extensions:
    - {name: other, extension: {a: 1}}
    - name: client.authentication.k8s.io/exec
      extension: {audience: "42"}
users:
- name: u
  user:
    as: alice
    as-uid: "7"
    as-groups: [x, y]
    as-user-extra: {scopes: [a, b]}
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: login
      args: [--id, ""]
      env: [{name: A, value: b=c}, {name: EMPTY, value: ""}]
      installHint: install it
      interactiveMode: Never
      provideClusterInfo: true
- name: legacy
  user: {auth-provider: {name: gcp, config: {a: b}}}
- name: basic
  user: {username: a, password: b}
- name: empty
  user: {exec: {command: login, args: null, env: null}}
)"));
  ASSERT_TRUE(merged.ok()) << merged.status();
  const KubeconfigCluster& cluster = merged->clusters.at("c");
  EXPECT_EQ(cluster.server, "https://a:6443");
  EXPECT_EQ(cluster.tls_server_name, "b");
  EXPECT_EQ(cluster.proxy_url, "http://p:1");
  EXPECT_TRUE(cluster.skip_verification);
  EXPECT_TRUE(cluster.disable_compression);
  EXPECT_EQ(cluster.plugin_config, R"({"audience":"42"})");
  const KubeconfigUser& user = merged->users.at("u");
  EXPECT_EQ(user.impersonation.user, "alice");
  EXPECT_EQ(user.impersonation.uid, "7");
  EXPECT_THAT(user.impersonation.groups, ElementsAre("x", "y"));
  EXPECT_THAT(user.impersonation.extra, ElementsAre(Pair("scopes", ElementsAre("a", "b"))));
  EXPECT_EQ(user.exec->api_version, "client.authentication.k8s.io/v1");
  EXPECT_EQ(user.exec->command, "login");
  EXPECT_THAT(user.exec->arguments, ElementsAre("--id", ""));
  EXPECT_THAT(user.exec->environment, ElementsAre(Pair("A", "b=c"), Pair("EMPTY", "")));
  EXPECT_EQ(user.exec->install_hint, "install it");
  EXPECT_EQ(user.exec_input, "Never");
  EXPECT_TRUE(user.exec_wants_cluster);
  EXPECT_EQ(merged->users.at("legacy").auth_provider, "gcp");
  EXPECT_TRUE(merged->users.at("basic").has_password);
  EXPECT_THAT(merged->users.at("empty").exec->arguments, IsEmpty());
}

TEST_F(KubeconfigTest, ErrorsNameFileAndField) {
  const struct {
    std::string text;
    std::string says;
  } cases[] = {
      {"{", ""},
      {"[]", "expected an object"},
      {"- 1", "expected an object"},
      {"contexts: 3", "contexts"},
      {"users: [3]", "users"},
      {"current-context: 3", "current-context: expected a string"},
      {"users: [{name: u, user: {token: 12345}}]", "users[0].user.token: expected a string"},
      {"users: [{name: u, user: {client-key-data: '?'}}]", "users[0].user.client-key-data"},
      {"users: [{name: u, user: {auth-provider: {}}}]", "auth-provider.name: is required"},
      {"users: [{name: u, user: {as-user-extra: 1}}]", "as-user-extra: expected an object"},
      {"users: [{name: u, user: {as-user-extra: {a: b}}}]", "as-user-extra.a"},
      {"users: [{name: u, user: {exec: {args: x}}}]", "users[0].user.exec.args"},
      {"users: [{name: u, user: {exec: {env: [{value: x}]}}}]", "env[0].name: is required"},
      {"users: [{name: u, user: {exec: {env: [{name: 'a=b'}]}}}]", "env[0].name: must not"},
      {"clusters: [{name: c, cluster: {insecure-skip-tls-verify: 'yes'}}]",
       "insecure-skip-tls-verify"},
      {"clusters: [{name: c}, {name: d}, {name: c}]", "clusters[2].name: repeats \"c\""},
  };
  const std::string good = Write("good", "current-context: one\n");
  for (const auto& each : cases) {
    const std::string bad = Write("bad", each.text);
    const absl::Status status = Load(good + ":" + bad).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << each.text;
    EXPECT_THAT(Message(status), HasSubstr(bad)) << each.text;
    EXPECT_THAT(Message(status), HasSubstr(each.says)) << each.text;
  }
}

TEST_F(KubeconfigTest, FilesAndFieldsAreBounded) {
  EXPECT_THAT(Message(Load(Write("long", std::string((4U << 20U) + 1, '#'))).status()),
              HasSubstr(folder_ / "long"));
  std::string many;
  for (int i = 0; i < 65; ++i) {
    many += fmt::format("/none/{}:", i);
  }
  EXPECT_THAT(Message(Load(many).status()), HasSubstr("more than 64 files"));
  EXPECT_THAT(Message(Load(Write("token", "users: [{name: u, user: {token: " +
                                              std::string(300'000, 'x') + "}}]"))
                          .status()),
              HasSubstr("token: longer than"));
}

}  // namespace
}  // namespace cachewarm::kube

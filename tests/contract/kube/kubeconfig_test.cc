// SPDX-License-Identifier: Apache-2.0
// Compares the reading of kubeconfig files with the real kubectl, the program of
// CACHEWARM_KUBECTL_BIN.
#include "lib/kube/kubeconfig/kubeconfig.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "gtest/gtest.h"
#include "lib/codec/base64.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/object.h"
#include "lib/kube/kubeconfig/plugin_process.h"
#include "lib/kube/kubeconfig/selection.h"
#include "tests/fakes/authority.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

std::string Kubectl() {
  const char* program = std::getenv("CACHEWARM_KUBECTL_BIN");
  return program != nullptr && ::access(program, X_OK) == 0 ? program : "";
}

class KubeconfigContract : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Kubectl().empty()) {
      GTEST_SKIP() << "CACHEWARM_KUBECTL_BIN names no program";
    }
    folder_.Write("a/ca.crt", "authority a");
    folder_.Write("pki/x.crt", "certificate");
    folder_.Write("pki/x.key", "key");
    folder_.Write("tokens/t", "token of a file");
    folder_.Write("a/config", kFirst);
    folder_.Write("b/config", kSecond);
    folder_.Write("empty", "");
  }

  // Runs kubectl with the files of $KUBECONFIG; returns its output, "" after an error.
  std::string Run(const std::string& variable, const std::string& arguments) const {
    FILE* pipe = ::popen(fmt::format("cd {} && HOME=/none KUBECONFIG={} {} {} 2>/dev/null",
                                     folder_.path(), variable, Kubectl(), arguments)
                             .c_str(),
                         "re");
    std::string output;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
      output += static_cast<char>(c);
    }
    return ::pclose(pipe) == 0 ? output : "";
  }
  // Returns the only item of a list in kubectl's view.
  static Json Only(const Json& view, const std::string& section, const std::string& member) {
    const Json* items = codec::At(view, {section});
    if (items == nullptr || !items->is_array() || items->size() != 1) {
      return Json::object();
    }
    return items->front().value(member, Json::object());
  }
  std::string Content(const std::string& file, const std::string& pem) const {
    std::ifstream in(file);
    return file.empty() ? pem : std::string{std::istreambuf_iterator<char>(in), {}};
  }
  static std::string Data(const Json& object, const std::string& name) {
    return codec::DecodeBase64(codec::TextAt(object, {name})).value_or("?");
  }
  std::string Files(const std::vector<std::string>& names) const {
    std::string variable;
    for (const std::string& name : names) {
      variable += fmt::format("{}/{}:", folder_.path(), name);
    }
    return variable;
  }

  void ExpectSameCluster(const Json& view, const ClusterConfig& config) const {
    const Json cluster = Only(view, "clusters", "cluster");
    EXPECT_EQ(config.server, codec::TextAt(cluster, {"server"}));
    EXPECT_EQ(config.proxy, codec::TextAt(cluster, {"proxy-url"}));
    EXPECT_EQ(config.tls.server_name, codec::TextAt(cluster, {"tls-server-name"}));
    EXPECT_EQ(config.tls.skip_verification, cluster.value("insecure-skip-tls-verify", false));
    EXPECT_EQ(Content(config.tls.ca_file, config.tls.ca_pem),
              Data(cluster, "certificate-authority-data"));
    const Json context = Only(view, "contexts", "context");
    EXPECT_EQ(config.default_namespace, context.value("namespace", "default"));
  }
  // kubectl prints the paths of the kubeconfig `file` as they are written.
  static std::string Resolved(const std::string& file, const std::string& path) {
    return path.empty()
               ? path
               : (std::filesystem::path(file).parent_path() / path).lexically_normal().string();
  }
  void ExpectSameUser(const Json& view, const std::string& file,
                      const ClusterConfig& config) const {
    const Json user = Only(view, "users", "user");
    EXPECT_EQ(Content(config.tls.certificate_file, config.tls.certificate_pem),
              Data(user, "client-certificate-data"));
    EXPECT_EQ(Content(config.tls.key_file, config.tls.key_pem), Data(user, "client-key-data"));
    EXPECT_EQ(config.token_file, Resolved(file, codec::TextAt(user, {"tokenFile"})));
    EXPECT_EQ(config.token, config.token_file.empty() ? codec::TextAt(user, {"token"}) : "");
    EXPECT_EQ(config.headers.Find("Impersonate-User").value_or(""), codec::TextAt(user, {"as"}));
    EXPECT_EQ(config.plugin != nullptr, user.contains("exec"));
    if (config.plugin != nullptr) {
      const std::string command = codec::TextAt(user, {"exec", "command"});
      EXPECT_EQ(config.plugin->command,
                command.find('/') == std::string::npos ? command : Resolved(file, command));
      EXPECT_EQ(config.plugin->api_version, codec::TextAt(user, {"exec", "apiVersion"}));
      EXPECT_EQ(config.plugin->arguments.size(), user["exec"].value("args", Json::array()).size());
    }
  }

  static constexpr char kFirst[] = R"(
apiVersion: v1
kind: Config
current-context: ""
clusters:
- {name: red, cluster: {server: "https://red:6443", certificate-authority: ca.crt}}
- name: blue
  cluster: {server: "https://blue", insecure-skip-tls-verify: true, proxy-url: "http://p:1"}
users:
- {name: red, user: {client-certificate: ../pki/x.crt, client-key: ../pki/x.key}}
- name: plugin
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      command: ./bin/login
      args: [a, b]
      env: [{name: A, value: "1"}]
contexts:
- {name: red, context: {cluster: red, user: red}}
- {name: plugin, context: {cluster: red, user: plugin, namespace: team}}
- {name: across, context: {cluster: green, user: token}}
)";
  static constexpr char kSecond[] = R"(
apiVersion: v1
kind: Config
current-context: across
clusters:
- {name: red, cluster: {server: "https://discarded", tls-server-name: discarded}}
- name: green
  cluster: {server: "https://green", tls-server-name: inside, certificate-authority-data: Z3JlZW4=}
users:
- {name: red, user: {token: discarded}}
- {name: token, user: {token: secret, as: alice, as-groups: [x]}}
- {name: file, user: {tokenFile: ../tokens/t}}
- name: path
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never}
contexts:
- {name: red, context: {cluster: green, user: token, namespace: discarded}}
- {name: file, context: {cluster: blue, user: file}}
- {name: path, context: {cluster: green, user: path}}
- {name: anonymous, context: {cluster: green}}
)";

  TempDir folder_;
};

TEST_F(KubeconfigContract, EveryContextIsReadAsKubectlReadsIt) {
  const std::vector<std::vector<std::string>> orders = {
      {"a/config", "b/config"},
      {"b/config", "a/config"},
      {"none", "a/config", "empty", "b/config", "a/config"},
      {"b/config"}};
  int compared = 0;
  for (const auto& names : orders) {
    const std::string variable = Files(names);
    SCOPED_TRACE(variable);
    const auto kubeconfig = LoadKubeconfig({.file = {}, .variable = variable, .home = {}});
    ASSERT_TRUE(kubeconfig.ok()) << kubeconfig.status();
    const auto whole = codec::ParseJson(Run(variable, "config view --flatten -o json"));
    // The contexts of b/config alone lack clusters of a/config, which kubectl accepts here.
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_EQ(codec::TextAt(*whole, {"current-context"}), kubeconfig->current_context);
    for (const auto& [section, count] : {std::pair("contexts", kubeconfig->contexts.size()),
                                         std::pair("clusters", kubeconfig->clusters.size()),
                                         std::pair("users", kubeconfig->users.size())}) {
      EXPECT_EQ(codec::At(*whole, {section})->size(), count) << section;
    }
    for (const auto& [name, context] : kubeconfig->contexts) {
      const auto config = SelectCluster(*kubeconfig, {.context = name});
      if (!kubeconfig->clusters.contains(context.cluster)) {
        EXPECT_FALSE(config.ok()) << name;
        continue;
      }
      SCOPED_TRACE(name);
      ASSERT_TRUE(config.ok()) << config.status();
      const auto view = codec::ParseJson(
          Run(variable, fmt::format("config view --flatten --minify --context={} -o json", name)));
      ASSERT_TRUE(view.ok()) << view.status();
      ExpectSameCluster(*view, *config);
      const auto user = kubeconfig->users.find(context.user);
      ExpectSameUser(*view, user == kubeconfig->users.end() ? "" : user->second.file, *config);
      ++compared;
    }
  }
  EXPECT_GE(compared, 18);
}

TEST_F(KubeconfigContract, BothRejectMalformedFiles) {
  for (const char* text :
       {"clusters: [{name: c, cluster: {server: 3}}]", "users: [{name: u, user: {token: 1234}}]",
        "clusters: [{name: c, cluster: {}}, {name: c, cluster: {}}]", "contexts: 3", "[]", "{",
        "users: [{name: u, user: {client-key-data: '?'}}]",
        "clusters: [{name: c, cluster: {insecure-skip-tls-verify: 'yes'}}]"}) {
    folder_.Write("bad", text);
    const std::string variable = Files({"a/config", "bad"});
    EXPECT_FALSE(LoadKubeconfig({.file = {}, .variable = variable, .home = {}}).ok()) << text;
    EXPECT_EQ(Run(variable, "config view --flatten -o json"), "") << text;
  }
}

TEST_F(KubeconfigContract, PluginsGetTheSameDescription) {
  folder_.Write("bin/login", "#!/bin/sh\necho \"$KUBERNETES_EXEC_INFO\" > \"$0.info\"; exit 1\n");
  ::chmod((folder_ / "bin/login").c_str(), 0755);
  const fakes::Authority authority(folder_.path(), "local");
  const std::string data = codec::EncodeBase64(Content(authority.ca(), ""));
  const auto info = [this] {
    const std::string text = Content(folder_ / "bin/login.info", "");
    ::unlink((folder_ / "bin/login.info").c_str());
    return codec::ParseJson(text).value_or(Json());
  };
  for (const char* version : {"v1", "v1beta1"}) {
    for (const std::string& cluster :
         {"server: 'https://127.0.0.1:1', tls-server-name: b, certificate-authority-data: " + data,
          std::string("server: 'https://127.0.0.1:1', certificate-authority: ../local.crt"),
          std::string("server: 'https://127.0.0.1:1', insecure-skip-tls-verify: true, "
                      "disable-compression: true, extensions: "
                      "[{name: client.authentication.k8s.io/exec, extension: {audience: x}}]"),
          std::string("server: 'https://127.0.0.1:1', proxy-url: 'http://127.0.0.1:2'")}) {
      for (const char* wanted : {"true", "false"}) {
        folder_.Write("bin/config",
                      fmt::format("current-context: c\n"
                                  "contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
                                  "clusters: [{{name: c, cluster: {{{}}}}}]\n"
                                  "users: [{{name: u, user: {{exec: {{command: ./login,\n"
                                  "  apiVersion: client.authentication.k8s.io/{},\n"
                                  "  interactiveMode: Never, provideClusterInfo: {}}}}}}}]\n",
                                  cluster, version, wanted));
        SCOPED_TRACE(fmt::format("{} {} {}", version, cluster, wanted));
        Run(folder_ / "bin/config", "get --raw /version");
        const Json expected = info();
        ASSERT_TRUE(expected.is_object());
        const auto kubeconfig =
            LoadKubeconfig({.file = folder_ / "bin/config", .variable = {}, .home = {}});
        ASSERT_TRUE(kubeconfig.ok()) << kubeconfig.status();
        const auto config = SelectCluster(*kubeconfig, {});
        ASSERT_TRUE(config.ok()) << config.status();
        EXPECT_FALSE(RunPlugin(*config->plugin, {}, SystemClock(), {}).ok());
        EXPECT_EQ(info(), expected);
      }
    }
  }
}

}  // namespace
}  // namespace cachewarm::kube

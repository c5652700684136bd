// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lib/base/status.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::kube {
namespace {

class ConfigTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  // A kubeconfig with one cluster and one user of these lines.
  absl::StatusOr<ClusterConfig> Read(const std::string& cluster, const std::string& user) {
    return KubeconfigFile(Write("config",
                                "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
                                "contexts:\n- name: here\n  context: {cluster: c, "
                                "user: u, namespace: team}\n"
                                "clusters:\n- name: c\n  cluster: {" +
                                    cluster + "}\nusers:\n- name: u\n  user: {" + user + "}\n"),
                          "");
  }
  void ExpectRefused(const absl::StatusOr<ClusterConfig>& config, const std::string& field) {
    EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_NE(Message(config.status()).find(field), std::string::npos) << config.status();
  }

  TempDir folder_;
};

TEST_F(ConfigTest, PodConfigHasServerTokenAndAuthority) {
  Write("token", "abc");
  Write("ca.crt", "pem");
  Write("namespace", "cachewarm-system");
  const auto config = InClusterConfig(
      {.service_host = "10.0.0.1", .service_port = "443", .account_dir = folder_.path()});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://10.0.0.1:443");
  EXPECT_EQ(config->token_file, folder_ / "token");
  EXPECT_EQ(config->tls.ca_file, folder_ / "ca.crt");
  EXPECT_EQ(config->default_namespace, "cachewarm-system");
  EXPECT_EQ(InClusterConfig(
                {.service_host = "fd00::1", .service_port = "443", .account_dir = folder_.path()})
                ->server,
            "https://[fd00::1]:443");
}

TEST_F(ConfigTest, OutsideAPodErrorNamesMissingPart) {
  const absl::Status no_service = InClusterConfig({}).status();
  EXPECT_EQ(no_service.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(no_service).find("kubeconfig"), std::string::npos);
  const absl::Status no_token =
      InClusterConfig({.service_host = "a", .service_port = "1", .account_dir = folder_.path()})
          .status();
  EXPECT_EQ(no_token.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(no_token).find(folder_ / "token"), std::string::npos) << no_token;
}

TEST_F(ConfigTest, KubeconfigFilesResolveAgainstItsFolder) {
  const auto config = Read("server: 'https://a:6443/', certificate-authority: pki/ca.crt",
                           "client-certificate: /abs/x.crt, client-key: ../y.key");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://a:6443");
  EXPECT_EQ(config->default_namespace, "team");
  EXPECT_EQ(config->tls.ca_file, folder_ / "pki/ca.crt");
  EXPECT_EQ(config->tls.certificate_file, "/abs/x.crt");
  EXPECT_EQ(config->tls.key_file,
            (std::filesystem::path(folder_.path()).parent_path() / "y.key").string());
}

TEST_F(ConfigTest, InlineKubeconfigDataWins) {
  const auto config =
      Read("server: 'https://a', certificate-authority-data: Y2E=, certificate-authority: x",
           "client-certificate-data: Y2VydA==, client-key-data: a2V5");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tls.ca_pem, "ca");
  EXPECT_EQ(config->tls.ca_file, "");
  EXPECT_EQ(config->tls.certificate_pem, "cert");
  EXPECT_EQ(config->tls.key_pem, "key");
}

TEST_F(ConfigTest, TokenFileWinsOverToken) {
  EXPECT_EQ(Read("server: 'https://a'", "token: abc")->token, "abc");
  const auto both = Read("server: 'https://a'", "token: abc, tokenFile: t");
  EXPECT_EQ(both->token_file, folder_ / "t");
  EXPECT_EQ(both->token, "");
}

TEST_F(ConfigTest, RejectsUnsupportedFieldsWithRemedy) {
  const std::string server = "server: 'https://a'";
  ExpectRefused(Read(server, "exec: {command: aws}"), "user.exec");
  ExpectRefused(Read(server, "auth-provider: {name: gcp}"), "user.auth-provider");
  ExpectRefused(Read(server, "username: a, password: b"), "user.username");
  ExpectRefused(Read(server, "as: root"), "user.as");
  ExpectRefused(Read(server + ", proxy-url: 'http://p'", ""), "cluster.proxy-url");
  ExpectRefused(Read(server + ", tls-server-name: x", ""), "cluster.tls-server-name");
  ExpectRefused(Read(server + ", insecure-skip-tls-verify: true", ""),
                "cluster.insecure-skip-tls-verify");
  EXPECT_TRUE(Read(server + ", insecure-skip-tls-verify: false", "").ok());
}

TEST_F(ConfigTest, ErrorsOfMalformedFilesNameThePath) {
  ExpectRefused(Read("server: nonsense", ""), "cluster.server");
  ExpectRefused(Read("certificate-authority-data: Y2E=", ""), "cluster.server");
  ExpectRefused(Read("server: 'https://a', certificate-authority-data: '?'", ""),
                "certificate-authority-data");
  for (const char* text : {"{", "[]", "a: b", "current-context: x", "- 1",
                           "current-context: x\ncontexts: [{name: x, context: {cluster: y}}]",
                           "current-context: x\ncontexts: 3"}) {
    const std::string path = Write("bad", text);
    ExpectRefused(KubeconfigFile(path, ""), path);
  }
  ExpectRefused(KubeconfigFile(Write("bad", "current-context: x"), "other"), "other");
  EXPECT_EQ(KubeconfigFile(folder_ / "missing", "").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ConfigTest, NamedKubeconfigWinsOverPodConfig) {
  EXPECT_EQ(FindConfig(folder_ / "missing", {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FindConfig("", {}).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace cachewarm::kube

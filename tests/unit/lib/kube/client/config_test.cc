// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client/config.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cachewarm::kube

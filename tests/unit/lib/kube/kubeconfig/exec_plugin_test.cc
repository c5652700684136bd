// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/kubeconfig/exec_plugin.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kVersion[] = "client.authentication.k8s.io/v1";

absl::StatusOr<PluginCredentials> Parse(const std::string& status) {
  return ParseExecCredential(
      {.api_version = kVersion},
      R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":)" +
          status + "}");
}

TEST(ExecPlugin, InfoContainsVersionModeAndCluster) {
  EXPECT_EQ(*codec::ParseJson(ExecInfo({.api_version = kVersion}, true)),
            *codec::ParseJson(R"({"kind":"ExecCredential",)"
                              R"("apiVersion":"client.authentication.k8s.io/v1",)"
                              R"("spec":{"interactive":true}})"));
  const auto info = codec::ParseJson(
      ExecInfo({.api_version = kVersion, .cluster = R"({"server":"https://a"})"}, false));
  EXPECT_EQ((*info)["spec"]["interactive"], false);
  EXPECT_EQ((*info)["spec"]["cluster"]["server"], "https://a");
}

TEST(ExecPlugin, ReadsTokenCertificateAndExpiry) {
  const auto token = Parse(R"({"token":"abc"})");
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->token, "abc");
  EXPECT_FALSE(token->expires.has_value());
  const auto both = Parse(R"({"token":"abc","clientCertificateData":"cert","clientKeyData":"key",)"
                          R"("expirationTimestamp":"2026-11-26T08:00:00Z","unknown":[1]})");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->certificate_pem, "cert");
  EXPECT_EQ(both->key_pem, "key");
  EXPECT_EQ(FormatTime(*both->expires), "2026-11-26T08:00:00Z");
}

TEST(ExecPlugin, ExpiryMayHaveAnOffset) {
  const std::pair<std::string, std::string> times[] = {
      {"2026-11-26T08:00:00+02:00", "2026-11-26T06:00:00Z"},
      {"2026-11-26T08:00:00.5-05:30", "2026-11-26T13:30:00Z"},
      {"2026-11-26T08:00:00+00:00", "2026-11-26T08:00:00Z"}};
  for (const auto& [text, utc] : times) {
    const auto parsed = Parse(R"({"token":"a","expirationTimestamp":")" + text + "\"}");
    ASSERT_TRUE(parsed.ok()) << text << parsed.status();
    EXPECT_EQ(FormatTime(*parsed->expires), utc) << text;
  }
  for (const char* text :
       {"soon", "+02:00", "2026-11-26T08:00:00+25:00", "2026-11-26T08:00:00+2:00",
        "2026-11-26T08:00:00", "-", "2026-11-26T08:00:00+0a:00"}) {
    const auto parsed =
        Parse(R"({"token":"a","expirationTimestamp":")" + std::string(text) + "\"}");
    EXPECT_THAT(Message(parsed.status()), HasSubstr("status.expirationTimestamp")) << text;
  }
}

TEST(ExecPlugin, RejectsUnusableOutput) {
  const std::string head = R"({"kind":"ExecCredential","apiVersion":")";
  const struct {
    std::string output;
    std::string says;
  } cases[] = {
      {"", "not a JSON object"},
      {"not json", "not a JSON object"},
      {"[]", "expected an object"},
      {"{}", "kind: expected ExecCredential"},
      {R"({"kind":"Pod","apiVersion":"v1"})", "kind: expected ExecCredential"},
      {head + R"(client.authentication.k8s.io/v1beta1"})",
       "apiVersion: expected client.authentication.k8s.io/v1,"},
      {head + kVersion + R"("})", "status: is required"},
      {head + kVersion + R"(","status":3})", "status: expected an object"},
      {head + kVersion + R"(","status":{}})", "status.token: is missing"},
      {head + kVersion + R"(","status":{"token":3}})", "status.token: expected a string"},
      {head + kVersion + R"(","status":{"token":"a\nb"}})", "status.token: contains a character"},
      {head + kVersion + R"(","status":{"token":"a b"}})", "status.token: contains a character"},
      {head + kVersion + R"(","status":{"clientKeyData":"k"}})",
       "status.clientCertificateData: is missing"},
      {head + kVersion + R"(","status":{"token":"t","clientCertificateData":"c"}})",
       "status.clientKeyData: is missing"},
      {head + kVersion + R"(","status":{"token":")" + std::string(300'000, 'x') + "\"}}",
       "status.token: longer than"},
      {std::string((1U << 20U) + 1, ' '), "at most 1048576 bytes"},
      {std::string(100, '[') + std::string(100, ']'), "not a JSON object"},
  };
  for (const auto& each : cases) {
    const auto parsed = ParseExecCredential({.api_version = kVersion}, each.output);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << each.says;
    EXPECT_THAT(Message(parsed.status()), HasSubstr(each.says));
  }
}

TEST(ExecPlugin, ErrorsContainNoSecret) {
  for (const char* output : {R"({"kind":"ExecCredential","status":{"token":"secret)", R"(secret)",
                             R"({"token":"secret"})"}) {
    const auto parsed = ParseExecCredential({.api_version = kVersion}, output);
    EXPECT_THAT(Message(parsed.status()), Not(HasSubstr("secret"))) << output;
  }
  EXPECT_THAT(Message(Parse(R"({"token":"sec ret"})").status()), Not(HasSubstr("sec")));
}

}  // namespace
}  // namespace cachewarm::kube

// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/registry/auth_file.h"

#include <unistd.h>

#include <fstream>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/codec/base64.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::bundle {
namespace {

constexpr char kHost[] = "registry.test:5000";

std::string Found(const std::string& json, const std::string& host = kHost) {
  const auto found = FindCredentials(json, host);
  if (!found.ok()) {
    return std::string(found.status().message());
  }
  return found->has_value() ? (*found)->base64 : "none";
}

TEST(AuthFile, FindsHostInEveryFormOfDocker) {
  EXPECT_EQ(Found(R"({"auths":{"registry.test:5000":{"auth":"YTpi"}}})"), "YTpi");
  EXPECT_EQ(Found(R"({"auths":{"https://registry.test:5000/v1/":{"auth":"YTpi"}}})"), "YTpi");
  EXPECT_EQ(Found(R"({"auths":{"registry.test:5000/team":{"auth":"YTpi"}}})"), "YTpi");
  EXPECT_EQ(Found(R"({"auths":{"registry.test:5000":{"username":"a","password":"b"}}})"), "YTpi");
  EXPECT_EQ(Found(R"({"auths":{"registry.test:5000":{"username":"ab","password":"c"}}})"),
            "YWI6Yw==");
  EXPECT_EQ(Found(R"({"auths":{"registry.test:5000":{"username":"abc","password":"d"}}})"),
            "YWJjOmQ=");
}

TEST(AuthFile, OtherHostsAreAnonymous) {
  EXPECT_EQ(Found(R"({"auths":{"registry.test":{"auth":"YTpi"}}})"), "none");
  EXPECT_EQ(Found(R"({"auths":{}})"), "none");
  EXPECT_EQ(Found("{}"), "none");
}

TEST(AuthFile, CredentialHelperErrorExplainsRemedy) {
  const auto mentions_helper = ::testing::HasSubstr("credential helper");
  EXPECT_THAT(Found(R"({"credsStore":"desktop"})"), mentions_helper);
  EXPECT_THAT(Found(R"({"auths":{"registry.test:5000":{}},"credsStore":"desktop"})"),
              mentions_helper);
  EXPECT_THAT(Found(R"({"credHelpers":{"registry.test:5000":"ecr-login"}})"), mentions_helper);
  EXPECT_EQ(Found(R"({"credHelpers":{"other.test":"ecr-login"}})"), "none");
  EXPECT_EQ(Found(R"({"auths":{"registry.test:5000":{"auth":"YTpi"}},"credsStore":"x"})"), "YTpi");
}

TEST(AuthFile, IdentityTokenErrorNamesFieldAndRemedy) {
  for (const std::string beside : {"", R"("auth":"MDAwMDo=",)", R"("username":"a",)"}) {
    const std::string json =
        fmt::format(R"({{"auths":{{"registry.test:5000":{{{}"identitytoken":"t"}}}}}})", beside);
    EXPECT_TRUE(absl::IsInvalidArgument(FindCredentials(json, kHost).status())) << json;
    EXPECT_THAT(Found(json),
                ::testing::AllOf(
                    ::testing::HasSubstr(R"(auths["registry.test:5000"].identitytoken: is not)"),
                    ::testing::HasSubstr("write a user and password instead")));
    EXPECT_EQ(Found(json, "other.test"), "none");
  }
  EXPECT_EQ(Found(R"({"auths":{"registry.test:5000":{"auth":"YTpi","identitytoken":""}}})"),
            "YTpi");
}

TEST(AuthFile, AcceptsKeyFileAsPassword) {
  const std::string password(3200, 'k');
  const std::string auth = codec::EncodeBase64("_json_key_base64:" + password);
  ASSERT_GT(auth.size(), 4096U);
  EXPECT_EQ(Found(fmt::format(R"({{"auths":{{"registry.test:5000":{{"auth":"{}"}}}}}})", auth)),
            auth);
  EXPECT_EQ(Found(fmt::format(R"({{"auths":{{"registry.test:5000":{{"username":"a",)"
                              R"("password":"{}"}}}}}})",
                              std::string(5000, 'p'))),
            codec::EncodeBase64("a:" + std::string(5000, 'p')));
}

TEST(AuthFile, MalformedFilesAreRefused) {
  for (const std::string json :
       {"", "[]", "not json", R"({"auths":{"registry.test:5000":{"auth":1}}})",
        R"({"auths":{"registry.test:5000":{"auth":"not base64\r\n"}}})",
        R"({"auths":{"registry.test:5000":{"email":"x"}}})",
        R"({"auths":{"registry.test:5000":"x"}})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(FindCredentials(json, kHost).status())) << json;
  }
}

TEST(AuthFile, FollowsRotatedSecret) {
  const TempDir temp;
  const fs::Dir dir = temp.Open();
  ASSERT_TRUE(dir.MakeDirs("..one", 0755).ok());
  ASSERT_TRUE(dir.MakeDirs("..two", 0755).ok());
  std::ofstream(temp / "..one/config.json")
      << R"({"auths":{"registry.test:5000":{"auth":"YTpi"}}})";
  std::ofstream(temp / "..two/config.json")
      << R"({"auths":{"registry.test:5000":{"auth":"Yzpk"}}})";
  ASSERT_EQ(::symlink("..one", (temp / "..data").c_str()), 0);
  ASSERT_EQ(::symlink("..data/config.json", (temp / "config.json").c_str()), 0);
  EXPECT_EQ((*ReadCredentials(temp / "config.json", kHost))->base64, "YTpi");
  ASSERT_EQ(::unlink((temp / "..data").c_str()), 0);
  ASSERT_EQ(::symlink("..two", (temp / "..data").c_str()), 0);
  EXPECT_EQ((*ReadCredentials(temp / "config.json", kHost))->base64, "Yzpk");
  EXPECT_FALSE(ReadCredentials("", kHost)->has_value());
  EXPECT_TRUE(absl::IsNotFound(ReadCredentials(temp / "none", kHost).status()));
}

}  // namespace
}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#include "lib/settings/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace cachewarm::settings {
namespace {

using ::testing::HasSubstr;

// Expects that each value is rejected with an error that quotes it, and that `to` is unchanged.
template <typename T>
void ExpectRefused(const Variable& variable, const T& to, const std::vector<std::string>& values) {
  const T before = to;
  for (const std::string& value : values) {
    const absl::Status refused = variable.set({value});
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << value << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("\"")) << value;
    EXPECT_EQ(to, before) << value;
  }
}

TEST(Values, NumbersAreIntegersInRange) {
  int small = 7;
  const Variable set = Number(small, 1, 16);
  ExpectRefused(
      set, small,
      {"", "0", "17", "-1", "1.5", "1 ", " 1", "0x1", "many", "1e1", "99999999999999999999"});
  EXPECT_TRUE(set.set({"16"}).ok());
  EXPECT_EQ(small, 16);
  int64_t large = 0;
  EXPECT_TRUE(Number(large, 0, INT64_MAX).set({"9223372036854775807"}).ok());
  EXPECT_EQ(large, INT64_MAX);
  EXPECT_THAT(std::string(set.set({"0"}).message()), HasSubstr("from 1 to 16"));
}

TEST(Values, PathsAreAbsoluteWithoutParentSegments) {
  std::string path = "/before";
  const Variable set = AbsolutePath(path);
  ExpectRefused(set, path,
                {"", "/", "var", "./var", "/a/../b", "/a/..", "/..", "/" + std::string(1024, 'x')});
  for (const auto& [value, kept] : std::vector<std::pair<std::string, std::string>>{
           {"/a", "/a"}, {"/a/b/", "/a/b"}, {"/a/..b", "/a/..b"}, {"/...", "/..."}}) {
    EXPECT_TRUE(set.set({value}).ok()) << value;
    EXPECT_EQ(path, kept);
  }
}

TEST(Values, BooleansAreTrueOrFalse) {
  bool on = true;
  const Variable set = Boolean(on);
  ExpectRefused(set, on, {"", "yes", "1", "True", "false "});
  EXPECT_EQ(set.initial, "true");
  EXPECT_EQ(set.form, Form::kPlain);
  EXPECT_EQ(Switch(on).form, Form::kSwitch);
  EXPECT_TRUE(set.set({"false"}).ok());
  EXPECT_FALSE(on);
}

TEST(Values, ListenAcceptsIpv4Ipv6AndNoAddress) {
  std::string address = "before";
  uint16_t port = 1;
  const Variable set = Listen(address, port);
  ExpectRefused(set, address, {"", "8080", "localhost", ":", ":x", ":65536", ":-1", "a:1:x"});
  EXPECT_EQ(port, 1);
  struct Case {
    std::string value;
    std::string address;
    uint16_t port;
  };
  for (const Case& each : std::vector<Case>{{"127.0.0.1:0", "127.0.0.1", 0},
                                            {"[::1]:65535", "::1", 65535},
                                            {"[::]:8080", "::", 8080},
                                            {":8080", "0.0.0.0", 8080}}) {
    EXPECT_TRUE(set.set({each.value}).ok()) << each.value;
    EXPECT_EQ(address, each.address);
    EXPECT_EQ(port, each.port);
  }
}

TEST(Values, NamesFollowKubernetesRules) {
  std::string name = "before";
  const Variable label = Label(name, "a namespace");
  ExpectRefused(label, name, {"", "A", "a b", "a.b", "a_b", std::string(64, 'a')});
  EXPECT_TRUE(label.set({std::string(63, 'a')}).ok());
  const Variable subdomain = Subdomain(name, "a node");
  ExpectRefused(subdomain, name, {"", "Node A", std::string(254, 'a')});
  EXPECT_TRUE(subdomain.set({"node-1.example"}).ok());
  EXPECT_EQ(name, "node-1.example");
  EXPECT_THAT(std::string(subdomain.set({"A"}).message()),
              HasSubstr("\"A\" is not a valid name of a node: expected a-z, 0-9, - and ., as in"));
  EXPECT_THAT(std::string(label.set({"a.b"}).message()),
              HasSubstr("expected a-z, 0-9 and -, as in"));
}

absl::StatusOr<size_t> ParseLength(std::string_view text) {
  if (text.empty()) {
    return absl::InvalidArgumentError("\"\" is nothing");
  }
  return text.size();
}

TEST(Values, TextIsKeptAndParsedUsesItsParser) {
  std::string text = "before";
  EXPECT_TRUE(Text(text).set({""}).ok());
  EXPECT_EQ(text, "");
  size_t length = 0;
  EXPECT_TRUE(Parsed(length, &ParseLength).set({"four"}).ok());
  EXPECT_EQ(length, 4U);
  ExpectRefused(Parsed(length, &ParseLength), length, {""});
}

TEST(Values, InitialValueIsShownAsText) {
  std::string empty;
  std::string path = "/var";
  std::string address = "0.0.0.0";
  uint16_t port = 8080;
  int64_t number = 400;
  EXPECT_EQ(Text(empty).initial, "none");
  EXPECT_EQ(AbsolutePath(empty).initial, "none");
  EXPECT_EQ(AbsolutePath(path).initial, "/var");
  EXPECT_EQ(Listen(address, port).initial, "0.0.0.0:8080");
  EXPECT_EQ(Number(number, 1, 1000).initial, "400");
  std::string name = "cachewarm-system";
  EXPECT_EQ(Label(name, "a namespace").initial, "cachewarm-system");
}

}  // namespace
}  // namespace cachewarm::settings

// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/bundle/store/open.h"

namespace cachewarm::bundle {
namespace {

TEST(StoreUrl, NamesARegistry) {
  const struct {
    std::string text;
    std::string host;
    std::string base;
  } cases[] = {{"oci://ghcr.io", "ghcr.io", ""},
               {"oci://ghcr.io/", "ghcr.io", ""},
               {"oci://ghcr.io/org/warm/", "ghcr.io", "org/warm"},
               {"oci://10.100.0.1:5000/base", "10.100.0.1:5000", "base"},
               {"oci://[::1]:5000/base", "[::1]:5000", "base"}};
  for (const auto& c : cases) {
    const auto url = ParseStoreUrl(c.text);
    ASSERT_TRUE(url.ok()) << url.status();
    EXPECT_EQ(url->kind, StoreUrl::Kind::kRegistry);
    EXPECT_EQ(url->host, c.host);
    EXPECT_EQ(url->base, c.base);
  }
}

TEST(StoreUrl, NamesADirectory) {
  const auto url = ParseStoreUrl("layout:///var/lib/bundles");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->kind, StoreUrl::Kind::kLayout);
  EXPECT_EQ(url->directory, "/var/lib/bundles");
}

TEST(StoreUrl, ErrorNamesExpectedForm) {
  for (const std::string text :
       {"", "ghcr.io/org", "https://ghcr.io", "oci://", "oci:///base", "oci://user:pw@ghcr.io/x",
        "oci://ghcr.io/UPPER", "oci://ghcr.io/a//b", "oci://ghcr.io:notaport/a", "oci://a b/",
        "layout://relative", "layout://", "file:///x"}) {
    const auto url = ParseStoreUrl(text);
    EXPECT_TRUE(absl::IsInvalidArgument(url.status())) << text;
    EXPECT_THAT(std::string(url.status().message()), ::testing::HasSubstr("expected oci://"))
        << text;
  }
}

TEST(Mirror, IsAHostAndABase) {
  EXPECT_EQ(ParseMirror("mirror.local:5000/cache/warm")->host, "mirror.local:5000");
  EXPECT_EQ(ParseMirror("mirror.local:5000/cache/warm")->base, "cache/warm");
  EXPECT_EQ(ParseMirror("10.0.0.7")->host, "10.0.0.7");
  for (const std::string text :
       {"", "/", "oci://m", "https://m", "user:pw@m", "m/UPPER", "m:port", "a b"}) {
    const auto mirror = ParseMirror(text);
    EXPECT_TRUE(absl::IsInvalidArgument(mirror.status())) << text;
    EXPECT_THAT(std::string(mirror.status().message()), ::testing::HasSubstr("host[:port][/base]"));
  }
}

TEST(OpenStore, AcceptsMirrorsOnlyForRegistries) {
  const StoreOptions registry{.url = "oci://127.0.0.1:1/base",
                              .mirrors = {"127.0.0.1:2", "127.0.0.1:3/other"},
                              .connections_max = 2,
                              .bytes_per_second = 1 << 20};
  EXPECT_TRUE(OpenStore(registry, SystemClock()).ok());
  StoreOptions bad = registry;
  bad.mirrors.push_back("oci://x");
  EXPECT_TRUE(absl::IsInvalidArgument(OpenStore(bad, SystemClock()).status()));
  const auto layout = OpenStore({.url = "layout:///tmp/x", .mirrors = {"m"}}, SystemClock());
  EXPECT_TRUE(absl::IsInvalidArgument(layout.status()));
  EXPECT_THAT(std::string(layout.status().message()), ::testing::HasSubstr("no mirrors"));
}

TEST(OpenStore, FailsIfCaFileCannotBeRead) {
  EXPECT_FALSE(
      OpenStore({.url = "oci://registry.test", .ca_file = "/nonexistent/ca.pem"}, SystemClock())
          .ok());
}

}  // namespace
}  // namespace cachewarm::bundle

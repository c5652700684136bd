// SPDX-License-Identifier: Apache-2.0
#include "lib/http/text/url.h"

#include <gtest/gtest.h>

namespace cachewarm::http {
namespace {

struct Good {
  std::string text;
  std::string origin;
  std::string target;
};

class ParsesUrl : public testing::TestWithParam<Good> {};

TEST_P(ParsesUrl, IntoOriginAndTarget) {
  const auto url = Url::Parse(GetParam().text);
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->Origin(), GetParam().origin);
  EXPECT_EQ(url->target, GetParam().target);
  EXPECT_EQ(url->ToString(), GetParam().origin + GetParam().target);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ParsesUrl,
    testing::Values(Good{"http://a", "http://a:80", "/"}, Good{"https://a", "https://a:443", "/"},
                    Good{"HTTPS://A.Example/x", "https://a.example:443", "/x"},
                    Good{"http://a:5000/v2/?x=1&y=%20", "http://a:5000", "/v2/?x=1&y=%20"},
                    Good{"http://a?x", "http://a:80", "/?x"},
                    Good{"https://[::1]:6443/api", "https://[::1]:6443", "/api"},
                    Good{"https://[fd00::1]", "https://[fd00::1]:443", "/"},
                    Good{"http://10.0.0.1:65535/", "http://10.0.0.1:65535", "/"}));

class RefusesUrl : public testing::TestWithParam<std::string> {};

TEST_P(RefusesUrl, WithInvalidArgument) {
  EXPECT_EQ(Url::Parse(GetParam()).status().code(), absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Table, RefusesUrl,
                         testing::Values("", "a", "/a", "ftp://a", "http://", "http:///x",
                                         "http://a:0", "http://a:65536", "http://a:x", "http://a b",
                                         "http://a/b c", "http://u@a/", "http://u:p@a/",
                                         "http://a/#f", "http://a/\n", "http://a\xc3\xa4/",
                                         "http://[::1", "http://[x]/", "http://a,b/",
                                         "http://" + std::string(300, 'a'),
                                         "http://a/" + std::string(17000, 'a')));

TEST(Url, ResolvesLocationsAgainstTheRequestUrl) {
  const Url base = *Url::Parse("https://r.example:5000/v2/a/blobs/uploads/?x=1");
  const auto resolve = [&](std::string_view location) {
    return ResolveLocation(base, location)->ToString();
  };
  EXPECT_EQ(resolve("/v2/b"), "https://r.example:5000/v2/b");
  EXPECT_EQ(resolve("?y=2"), "https://r.example:5000/v2/a/blobs/uploads/?y=2");
  EXPECT_EQ(resolve("uuid?z"), "https://r.example:5000/v2/a/blobs/uploads/uuid?z");
  EXPECT_EQ(resolve("//cdn.example/x"), "https://cdn.example:443/x");
  EXPECT_EQ(resolve("http://other/x"), "http://other:80/x");
  EXPECT_FALSE(ResolveLocation(base, "file:///etc/passwd").ok());
}

TEST(Url, RecognizesLoopbackHosts) {
  for (const char* host : {"localhost", "127.0.0.1", "127.9.8.7", "::1"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"128.0.0.1", "127.example.org", "127.0.0.1.example.org", "10.0.0.1",
                           "localhost.example.org", "::2", ""}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace cachewarm::http

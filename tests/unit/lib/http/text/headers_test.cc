// SPDX-License-Identifier: Apache-2.0
#include "lib/http/text/headers.h"

#include <gtest/gtest.h>

namespace cachewarm::http {
namespace {

TEST(Headers, NamesCompareWithoutCase) {
  const Headers headers = {{"Content-Type", "text/plain"}};
  EXPECT_EQ(headers.Find("content-type"), "text/plain");
  EXPECT_EQ(headers.Find("CONTENT-TYPE"), "text/plain");
  EXPECT_EQ(headers.Find("Content-Typ"), std::nullopt);
  EXPECT_EQ(headers.Find("Content-Types"), std::nullopt);
}

TEST(Headers, FindReturnsTheFirstField) {
  Headers headers;
  headers.Add("Link", "a");
  headers.Add("link", "b");
  EXPECT_EQ(headers.size(), 2U);
  EXPECT_EQ(headers.Find("LINK"), "a");
}

TEST(Headers, SetReplacesEveryFieldOfTheName) {
  Headers headers = {{"A", "1"}, {"a", "2"}, {"B", "3"}};
  headers.Set("A", "4");
  EXPECT_EQ(headers.size(), 2U);
  EXPECT_EQ(headers.Find("a"), "4");
  EXPECT_EQ(headers.Find("b"), "3");
}

TEST(Headers, OrderOfAdditionIsKept) {
  Headers headers;
  headers.Add("Z", "1");
  headers.Add("A", "2");
  std::string names;
  for (const auto& [name, value] : headers) {
    names += name;
  }
  EXPECT_EQ(names, "ZA");
}

}  // namespace
}  // namespace cachewarm::http

// SPDX-License-Identifier: Apache-2.0
#include "lib/resp/reply.h"

#include <gtest/gtest.h>

namespace cachewarm::resp {
namespace {

TEST(Reply, WritesEveryTypeAsTheProtocolDefinesIt) {
  EXPECT_EQ(SimpleString("OK"), "+OK\r\n");
  EXPECT_EQ(Integer(-3), ":-3\r\n");
  EXPECT_EQ(BulkString(std::string_view("a\0\r\n", 4)), std::string_view("$4\r\na\0\r\n\r\n", 10));
  EXPECT_EQ(BulkString(""), "$0\r\n\r\n");
  EXPECT_EQ(BulkHeader(5) + "hello" + std::string(BulkEnd()), BulkString("hello"));
  EXPECT_EQ(ArrayHeader(2), "*2\r\n");
}

TEST(Reply, MapAndNullDependOnTheVersion) {
  EXPECT_EQ(MapHeader(7, Version::kResp3), "%7\r\n");
  EXPECT_EQ(MapHeader(7, Version::kResp2), "*14\r\n");
  EXPECT_EQ(Null(Version::kResp3), "_\r\n");
  EXPECT_EQ(Null(Version::kResp2), "$-1\r\n");
}

TEST(Reply, AnErrorStaysOnOneLine) {
  EXPECT_EQ(Error("ERR a\r\n+OK\n"), "-ERR a  +OK \r\n");
}

}  // namespace
}  // namespace cachewarm::resp

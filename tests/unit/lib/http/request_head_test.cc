// SPDX-License-Identifier: Apache-2.0
#include "lib/http/request_head.h"

#include <gtest/gtest.h>

namespace cachewarm::http {
namespace {

absl::StatusOr<std::string> HeadOf(const Request& request) {
  return RequestHead(request, *Url::Parse(request.url), "me");
}

TEST(RequestHead, HasRequestHeadersAndFraming) {
  EXPECT_EQ(*HeadOf({.url = "http://[fd00::1]:8000/a?b"}),
            "GET /a?b HTTP/1.1\r\nHost: [fd00::1]:8000\r\nUser-Agent: me\r\n"
            "Connection: close\r\n\r\n");
  EXPECT_EQ(*HeadOf({.method = Method::kPost,
                     .url = "http://10.0.0.1/",
                     .headers = {{"host", "model"},
                                 {"content-length", "9"},
                                 {"Transfer-Encoding", "chunked"},
                                 {"connection", "upgrade"},
                                 {"X-One", "1"}},
                     .body = "ab"}),
            "POST / HTTP/1.1\r\nUser-Agent: me\r\nhost: model\r\nX-One: 1\r\n"
            "Content-Type: application/octet-stream\r\nContent-Length: 2\r\n"
            "Connection: close\r\n\r\n");
}

TEST(RequestHead, RejectsHeaderWithLineBreak) {
  const Headers table[] = {{{"X-One", "1\r\nX-Two: 2"}},
                           {{"X-One", std::string(1, '\0')}},
                           {{"X-One: 1\r\nX", "2"}},
                           {{"", "1"}},
                           {{"X One", "1"}}};
  for (const Headers& headers : table) {
    EXPECT_EQ(HeadOf({.url = "http://10.0.0.1/", .headers = headers}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace cachewarm::http

// SPDX-License-Identifier: Apache-2.0
#include "lib/http/client.h"

#include "fmt/format.h"
#include "lib/http/text/http_status.h"

namespace cachewarm::http {
namespace {

constexpr size_t kMessageBytesMax = 400;

// Returns the beginning of the body as one printable line of at most kMessageBytesMax bytes.
std::string Excerpt(std::string_view body) {
  std::string line(body.substr(0, kMessageBytesMax));
  for (char& c : line) {
    if (c < ' ' || c > '~') {
      c = ' ';
    }
  }
  while (!line.empty() && line.back() == ' ') {
    line.pop_back();
  }
  return line;
}

}  // namespace

std::string_view MethodName(Method method) {
  switch (method) {
    case Method::kGet:
      return "GET";
    case Method::kHead:
      return "HEAD";
    case Method::kPost:
      return "POST";
    case Method::kPut:
      return "PUT";
    case Method::kPatch:
      return "PATCH";
    case Method::kDelete:
      return "DELETE";
  }
  return "GET";
}

absl::Status StatusOf(const Response& response) {
  const absl::StatusCode code = CodeOfHttpStatus(response.status);
  if (code == absl::StatusCode::kOk) {
    return absl::OkStatus();
  }
  const std::string excerpt = Excerpt(response.body);
  return absl::Status(
      code, fmt::format("HTTP {}{}{}", response.status, excerpt.empty() ? "" : ": ", excerpt));
}

}  // namespace cachewarm::http

// SPDX-License-Identifier: Apache-2.0
#include "lib/http/client.h"

#include "fmt/format.h"

namespace cachewarm::http {
namespace {

constexpr size_t kMessageBytesMax = 400;

absl::StatusCode CodeFor(int status) {
  switch (status) {
    case 400:
    case 405:
    case 411:
    case 413:
    case 414:
    case 415:
    case 422:
    case 431:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
    case 412:
      return absl::StatusCode::kAborted;
    case 410:
    case 416:
      return absl::StatusCode::kOutOfRange;
    case 429:
    case 507:
      return absl::StatusCode::kResourceExhausted;
    case 501:
      return absl::StatusCode::kUnimplemented;
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    case 408:
    case 500:
    case 502:
    case 503:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kUnknown;
  }
}

// One printable line of at most kMessageBytesMax bytes.
std::string Excerpt(std::string_view body) {
  std::string line(body.substr(0, kMessageBytesMax));
  for (char& c : line) {
    if (c < ' ') {
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
  if (response.status >= 200 && response.status < 400) {
    return absl::OkStatus();
  }
  const std::string excerpt = Excerpt(response.body);
  return absl::Status(CodeFor(response.status), fmt::format("HTTP {}{}{}", response.status,
                                                            excerpt.empty() ? "" : ": ", excerpt));
}

}  // namespace cachewarm::http

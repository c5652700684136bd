// SPDX-License-Identifier: Apache-2.0
#include "lib/http/request_head.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/http/text/ascii.h"

namespace cachewarm::http {
namespace {

// Returns true for a "token" of RFC 9110 §5.6.2.
bool IsName(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool IsValue(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
  });
}

absl::Status CheckHeaders(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (!IsName(name) || !IsValue(value)) {
      return absl::InvalidArgumentError(
          fmt::format("header \"{}\": its name must be a token of RFC 9110, and its value may not "
                      "hold control characters",
                      IsName(name) ? name : ""));
    }
  }
  return absl::OkStatus();
}

bool IsOfTheFrame(std::string_view name) {
  const std::string lower = Lower(name);
  return lower == "connection" || lower == "content-length" || lower == "transfer-encoding";
}

void AddFrame(const Request& request, Headers& headers) {
  const bool writes = request.method == Method::kPost || request.method == Method::kPut ||
                      request.method == Method::kPatch || request.source != nullptr;
  const uint64_t bytes =
      request.source != nullptr ? request.source->size() : uint64_t{request.body.size()};
  if (bytes > 0 && !headers.Find("Content-Type").has_value()) {
    headers.Add("Content-Type", "application/octet-stream");
  }
  if (bytes > 0 || writes) {
    headers.Add("Content-Length", fmt::format("{}", bytes));
  }
  headers.Add("Connection", "close");
}

}  // namespace

absl::StatusOr<std::string> RequestHead(const Request& request, const Url& url,
                                        const std::string& user_agent) {
  CW_RETURN_IF_ERROR(CheckHeaders(request.headers));
  Headers headers;
  for (const auto& [name, value] : {std::pair("Host", url.Origin().substr(url.scheme.size() + 3)),
                                    std::pair("User-Agent", user_agent)}) {
    if (!request.headers.Find(name).has_value()) {
      headers.Add(name, value);
    }
  }
  for (const auto& [name, value] : request.headers) {
    if (!IsOfTheFrame(name)) {
      headers.Add(name, value);
    }
  }
  AddFrame(request, headers);
  std::string head = fmt::format("{} {} HTTP/1.1\r\n", MethodName(request.method), url.target);
  for (const auto& [name, value] : headers) {
    head += fmt::format("{}: {}\r\n", name, value);
  }
  return head + "\r\n";
}

}  // namespace cachewarm::http

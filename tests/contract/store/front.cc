// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/store/front.h"

#include <utility>

#include "fmt/format.h"
#include "gtest/gtest.h"

namespace cachewarm::bundle {
namespace {

using http::Method;

constexpr size_t kBodyBytesMax = 64U << 20U;

Method MethodOf(const std::string& name) {
  for (const Method method : {Method::kGet, Method::kHead, Method::kPost, Method::kPut,
                              Method::kPatch, Method::kDelete}) {
    if (http::MethodName(method) == name) {
      return method;
    }
  }
  ADD_FAILURE() << "no such method: " << name;
  return Method::kGet;
}

// Those of one connection only, and what RawAnswer() writes itself.
bool IsOfTheConnection(const std::string& name) {
  for (const char* each : {"Host", "Connection", "Content-Length", "Transfer-Encoding"}) {
    if (http::Headers{{name, ""}}.Find(each).has_value()) {
      return true;
    }
  }
  return false;
}

}  // namespace

Front::Front(const FrontOptions& options)
    : options_(options),
      client_(*http::MakeClient({}), options.decide),
      server_([this](fakes::RawConnection& connection, int) { Serve(connection); }) {}

std::string Front::address() const {
  return fmt::format("127.0.0.1:{}", server_.port());
}

std::vector<ByteRange> Front::ranges() const {
  const std::lock_guard lock(mutex_);
  return ranges_;
}

void Front::Serve(fakes::RawConnection& connection) {
  std::string text = connection.ReadRequest();
  while (!text.empty() && Pass(ParseRawRequest(text), connection)) {
    text = connection.ReadRequest();
  }
}

bool Front::Pass(const RawRequest& asked, fakes::RawConnection& connection) {
  http::Request request{.method = MethodOf(asked.method),
                        .url = fmt::format("http://{}{}", options_.registry, asked.target),
                        .body = asked.body,
                        .body_bytes_max = kBodyBytesMax};
  for (const auto& [name, value] : asked.headers) {
    if (!IsOfTheConnection(name)) {
      request.headers.Add(name, value);
    }
  }
  // So that the registry's locations lead here.
  request.headers.Set("X-Forwarded-Host", address());
  const auto range = RangeOf(asked);
  if (range.has_value()) {
    const std::lock_guard lock(mutex_);
    ranges_.push_back(*range);
  }
  const auto response = client_.Send(request, {});
  if (!response.ok()) {
    return false;
  }
  std::string headers;
  for (const auto& [name, value] : response->headers) {
    headers += IsOfTheConnection(name) ? "" : fmt::format("{}: {}\r\n", name, value);
  }
  std::string answer = fakes::RawAnswer(response->status, response->body, headers);
  const size_t most = options_.range_bytes_max;
  const bool is_cut = range.has_value() && most > 0 && response->body.size() > most;
  if (is_cut) {
    answer.resize(answer.size() - response->body.size() + most);
  }
  connection.Write(answer);
  return !is_cut;
}

}  // namespace cachewarm::bundle

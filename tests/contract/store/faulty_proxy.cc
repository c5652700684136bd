// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/store/faulty_proxy.h"

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

// Headers of a single connection, and those that RawResponse() writes itself.
bool IsOfTheConnection(const std::string& name) {
  for (const char* each : {"Host", "Connection", "Content-Length", "Transfer-Encoding"}) {
    if (http::Headers{{name, ""}}.Find(each).has_value()) {
      return true;
    }
  }
  return false;
}

}  // namespace

FaultyProxy::FaultyProxy(const FaultyProxyOptions& options)
    : options_(options),
      client_(*http::MakeClient({}), options.decide),
      server_([this](fakes::RawConnection& connection, int) { Serve(connection); }) {}

std::string FaultyProxy::address() const {
  return fmt::format("127.0.0.1:{}", server_.port());
}

std::vector<ByteRange> FaultyProxy::ranges() const {
  const std::lock_guard lock(mutex_);
  return ranges_;
}

void FaultyProxy::Serve(fakes::RawConnection& connection) {
  std::string text = connection.ReadRequest();
  while (!text.empty() && Forward(ParseRawRequest(text), connection)) {
    text = connection.ReadRequest();
  }
}

bool FaultyProxy::Forward(const RawRequest& incoming, fakes::RawConnection& connection) {
  http::Request request{.method = MethodOf(incoming.method),
                        .url = fmt::format("http://{}{}", options_.registry, incoming.target),
                        .body = incoming.body,
                        .body_bytes_max = kBodyBytesMax};
  for (const auto& [name, value] : incoming.headers) {
    if (!IsOfTheConnection(name)) {
      request.headers.Add(name, value);
    }
  }
  // Makes the Location headers of the registry point to this proxy.
  request.headers.Set("X-Forwarded-Host", address());
  const auto range = RangeOf(incoming);
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
  std::string answer = fakes::RawResponse(response->status, response->body, headers);
  const size_t most = options_.range_bytes_max;
  const bool is_cut = range.has_value() && most > 0 && response->body.size() > most;
  if (is_cut) {
    answer.resize(answer.size() - response->body.size() + most);
  }
  connection.Write(answer);
  return !is_cut;
}

}  // namespace cachewarm::bundle

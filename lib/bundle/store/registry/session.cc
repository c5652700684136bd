// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/registry/session.h"

#include <optional>
#include <system_error>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/store/registry/auth_file.h"
#include "lib/bundle/utf8.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/http/text/retry_after.h"
#include "lib/http/text/url.h"

namespace cachewarm::bundle {
namespace {

using codec::Json;

constexpr int kUnauthorized = 401;
constexpr int kTooManyRequests = 429;
constexpr int kServiceUnavailable = 503;
// Maximum number of cached authorizations: one per scope, that is, per repository and access (pull
// or push). When it is reached, all are dropped.
constexpr size_t kTokensMax = 1024;
constexpr size_t kTokenAnswerBytesMax = 64U << 10U;
constexpr size_t kWordsBytesMax = 500;

// Returns the text of the "detail" of an error, which is a string or an object. docker-registry 2.8
// writes the error of a system call as a number, {"Enclosed":{"Err":28}}. In that case the system's
// message for this number is appended.
std::string DetailOf(const Json& error) {
  const auto detail = error.find("detail");
  if (detail == error.end() || detail->empty()) {
    return "";
  }
  if (!detail->is_object()) {
    return codec::TextAt(error, {"detail"}).substr(0, kWordsBytesMax);
  }
  std::string words =
      detail->dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, kWordsBytesMax);
  const Json* number = codec::At(*detail, {"Enclosed", "Err"});
  if (number != nullptr && number->is_number_unsigned()) {
    words += ": " + std::generic_category().message(number->get<int>());
  }
  return words;
}

// Returns the text that messages quote from an error body like
// {"errors":[{"code":"DENIED","message":"..."}]}; empty for any other body.
std::string OciError(const std::string& body) {
  const auto json = codec::ParseJson(body, {.bytes_max = 64U << 10U});
  if (!json.ok()) {
    return "";
  }
  const Json& errors = codec::ListAt(*json, {"errors"});
  if (errors.empty() || !errors.front().is_object()) {
    return "";
  }
  const Json& first = errors.front();
  const std::string detail = DetailOf(first);
  return Printable(fmt::format("{}: {}{}{}",
                               codec::TextAt(first, {"code"}).substr(0, kWordsBytesMax),
                               codec::TextAt(first, {"message"}).substr(0, kWordsBytesMax),
                               detail.empty() ? "" : ": ", detail));
}

}  // namespace

std::string NameOf(http::Method method, std::string_view url) {
  return fmt::format("{} {}", http::MethodName(method), url.substr(0, url.find('?')));
}

absl::Status RegistryStatus(const http::Response& response, std::string_view what) {
  if (response.status / 100 == 2) {
    return absl::OkStatus();
  }
  absl::Status status = http::StatusOf(response);
  if (status.ok()) {
    return absl::UnavailableError(
        fmt::format("{}: unexpected HTTP {} from the registry", what, response.status));
  }
  const std::string words = OciError(response.body);
  const bool busy = response.status == kTooManyRequests;
  absl::Status result(busy ? absl::StatusCode::kUnavailable : status.code(),
                      words.empty() ? fmt::format("{}: {}", what, Message(status))
                                    : fmt::format("{}: HTTP {}: {}", what, response.status, words));
  const auto wait = http::RetryAfter(response.headers);
  if (busy || (response.status == kServiceUnavailable && wait.has_value())) {
    http::SetRetryAfter(result, wait.value_or(Duration{0}));
  }
  return result;
}

Session::Session(SessionOptions options, std::unique_ptr<http::Client> client, const Clock& clock,
                 Random random)
    : options_(std::move(options)),
      client_(std::move(client)),
      clock_(clock),
      random_(std::move(random)) {}

bool Session::IsAtOrigin(const std::string& url) const {
  const auto target = http::Url::Parse(url);
  const auto origin = http::Url::Parse(options_.origin);
  return target.ok() && origin.ok() && target->Origin() == origin->Origin();
}

void Session::Authorize(http::Request& request, const std::string& scope) const {
  const std::lock_guard lock(mutex_);
  const auto found = authorization_.find(scope);
  if (found != authorization_.end() && IsAtOrigin(request.url)) {
    request.headers.Set("Authorization", found->second);
  }
}

absl::StatusOr<http::Response> Session::Send(http::Request request, const std::string& scope,
                                             std::stop_token stop) {
  for (RetryBudget budget = NewRetryBudget();;) {
    auto response = SendOnce(request, scope, stop);
    // If the registry is overloaded, SendOnce() returns a response (429 or 503). If the token
    // server is overloaded, SendOnce() returns an error. Convert both to a status, in which a
    // Retry-After shows the overload.
    const absl::Status status =
        response.ok() ? RegistryStatus(*response, request.url) : response.status();
    if (!http::RetryAfterOf(status).has_value()) {
      return response;
    }
    const absl::Status waited = budget.WaitBeforeRetry(status, stop);
    if (absl::IsCancelled(waited)) {
      return waited;
    }
    if (!waited.ok()) {
      return response;
    }
  }
}

absl::StatusOr<http::Response> Session::SendOnce(http::Request& request, const std::string& scope,
                                                 std::stop_token stop) {
  Authorize(request, scope);
  auto response = client_->Send(request, stop);
  if (!response.ok() || response->status != kUnauthorized || !IsAtOrigin(request.url)) {
    return response;
  }
  CW_ASSIGN_OR_RETURN(const bool again, Login(*response, scope, stop));
  if (!again) {
    return response;
  }
  Authorize(request, scope);
  return client_->Send(request, stop);
}

absl::StatusOr<http::Response> Session::Stream(http::Request request, http::BodySink& sink,
                                               const std::string& scope, std::stop_token stop) {
  Authorize(request, scope);
  auto response = client_->Stream(request, sink, stop);
  if (!response.ok() || response->status != kUnauthorized || !IsAtOrigin(request.url)) {
    return response;
  }
  CW_ASSIGN_OR_RETURN(const bool again, Login(*response, scope, stop));
  if (!again) {
    return response;
  }
  Authorize(request, scope);
  return client_->Stream(request, sink, stop);
}

absl::StatusOr<bool> Session::Login(const http::Response& refused, const std::string& scope,
                                    std::stop_token stop) {
  const auto header = refused.headers.Find("WWW-Authenticate");
  if (!header.has_value()) {
    return false;
  }
  CW_ASSIGN_OR_RETURN(const Challenge challenge, ParseChallenge(*header));
  std::string value;
  if (challenge.scheme == "bearer") {
    CW_ASSIGN_OR_RETURN(const std::string token, FetchToken(challenge, scope, stop));
    value = "Bearer " + token;
  } else if (challenge.scheme == "basic") {
    CW_ASSIGN_OR_RETURN(const std::optional<BasicCredentials> credentials,
                        ReadCredentials(options_.auth_file, options_.host));
    if (!credentials.has_value()) {
      return false;
    }
    value = "Basic " + credentials->base64;
  } else {
    return false;
  }
  const std::lock_guard lock(mutex_);
  if (authorization_.size() >= kTokensMax) {
    authorization_.clear();
  }
  authorization_[scope] = std::move(value);
  return true;
}

absl::StatusOr<std::string> Session::FetchToken(const Challenge& challenge,
                                                const std::string& scope, std::stop_token stop) {
  http::Request request{.body_bytes_max = kTokenAnswerBytesMax};
  CW_ASSIGN_OR_RETURN(request.url, TokenUrl(challenge, scope));
  CW_ASSIGN_OR_RETURN(const std::optional<BasicCredentials> credentials,
                      ReadCredentials(options_.auth_file, options_.host));
  if (credentials.has_value()) {
    // Sending credentials is safe: the client uses plain http only for configured hosts.
    request.headers.Set("Authorization", "Basic " + credentials->base64);
  }
  CW_ASSIGN_OR_RETURN(const http::Response response, client_->Send(request, stop));
  CW_RETURN_IF_ERROR(RegistryStatus(response, "token server"));
  return ParseToken(response.body);
}

}  // namespace cachewarm::bundle

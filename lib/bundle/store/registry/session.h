// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/bundle/store/registry/challenge.h"
#include "lib/bundle/store/registry/retry_budget.h"
#include "lib/http/client.h"

namespace cachewarm::bundle {

// HTTP statuses that several callers handle.
inline constexpr int kBadRequest = 400;
inline constexpr int kNotFound = 404;
inline constexpr int kNotAllowed = 405;

struct SessionOptions {
  std::string origin;     // "http://10.100.0.1:5000"
  std::string host;       // "10.100.0.1:5000": the auth file has the credentials under this name
  std::string auth_file;  // path of a docker config.json; empty: anonymous
  int tries = 4;          // attempts per request before the registry counts as unavailable
};

// Sends requests to one registry as one user: answers its challenges (Basic, Bearer) with the
// credentials of the auth file or anonymously, and caches the resulting authorization by scope.
// Credentials are sent only to the origin and to the token server that the origin names.
// Thread-safe.
class Session {
 public:
  // `clock` must outlive this object.
  Session(SessionOptions options, std::unique_ptr<http::Client> client, const Clock& clock,
          Random random);

  const std::string& origin() const { return options_.origin; }
  RetryBudget NewRetryBudget() const { return {clock_, random_, options_.tries}; }

  // Sends `request`, whose URL is below the origin or was named by the origin. Returns the
  // response, which may have any status, for example 401 if the registry refuses the credentials.
  // `scope` is the access that a token must grant ("repository:team/llama:pull"). While the
  // registry is overloaded (429, or 503 with Retry-After), waits and repeats the request. Returns
  // the last response when all attempts have been made. Only for idempotent requests.
  absl::StatusOr<http::Response> Send(http::Request request, const std::string& scope,
                                      std::stop_token stop);
  // As Send(), but does not repeat the request when the registry is overloaded. The body of
  // `request` is still valid afterwards.
  absl::StatusOr<http::Response> SendOnce(http::Request& request, const std::string& scope,
                                          std::stop_token stop);
  // As SendOnce(), but passes the body of the response to `sink` (http::Client::Stream()).
  absl::StatusOr<http::Response> Stream(http::Request request, http::BodySink& sink,
                                        const std::string& scope, std::stop_token stop);

 private:
  bool IsAtOrigin(const std::string& url) const;
  void Authorize(http::Request& request, const std::string& scope) const;
  // Answers the challenge of a 401 response and caches the authorization. False if that is not
  // possible: there is no challenge, its scheme is unknown, or it is Basic and the auth file has no
  // credentials.
  absl::StatusOr<bool> Login(const http::Response& refused, const std::string& scope,
                             std::stop_token stop);
  absl::StatusOr<std::string> FetchToken(const Challenge& challenge, const std::string& scope,
                                         std::stop_token stop);

  const SessionOptions options_;
  const std::unique_ptr<http::Client> client_;
  const Clock& clock_;
  const Random random_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> authorization_;  // by scope
};

// Formats a request for messages, without the query of its URL: after a redirect to an object store
// the query contains a signature.
std::string NameOf(http::Method method, std::string_view url);

// Converts a response to a status: OK for 2xx, UNAVAILABLE for 429, otherwise as http::StatusOf().
// The message is `what` and the registry's own message (OCI distribution "errors").
// http::RetryAfterOf() of the result is the wait that the registry requested. It is set for 503
// with Retry-After, and for every 429, where it is 0 if the response has no Retry-After.
absl::Status RegistryStatus(const http::Response& response, std::string_view what);

}  // namespace cachewarm::bundle

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

// Answers that more than one request has a meaning for.
inline constexpr int kBadRequest = 400;
inline constexpr int kNotFound = 404;

struct SessionOptions {
  std::string origin;     // "http://10.100.0.1:5000"
  std::string host;       // as the auth file names it
  std::string auth_file;  // may be empty
  int tries = 4;          // of a request, before the registry counts as unavailable
};

// Speaks to one registry as one user: answers its challenges (Basic, Bearer) with the credentials
// of the auth file or anonymously, and keeps what was accepted. Authorization goes to the origin
// and to the token server that it names, nowhere else. Thread-safe.
class Session {
 public:
  // `clock` must outlive it.
  Session(SessionOptions options, std::unique_ptr<http::Client> client, const Clock& clock,
          Random random);

  const std::string& origin() const { return options_.origin; }
  RetryBudget NewRetryBudget() const { return {clock_, random_, options_.tries}; }

  // Sends `request`, whose url is below the origin or was named by the origin. `scope` is what a
  // token must allow ("repository:team/llama:pull"). A second 401 is returned as it is. For
  // requests that may be repeated: a registry that is busy (429, or 503 with Retry-After) is waited
  // for, and its last answer returned when the tries are spent.
  absl::StatusOr<http::Response> Send(http::Request request, const std::string& scope,
                                      std::stop_token stop);
  // Once. What `request` holds is still there afterwards.
  absl::StatusOr<http::Response> SendOnce(http::Request& request, const std::string& scope,
                                          std::stop_token stop);
  // Once, with http::Client::Stream.
  absl::StatusOr<http::Response> Stream(http::Request request, http::BodySink& sink,
                                        const std::string& scope, std::stop_token stop);

 private:
  bool IsAtOrigin(const std::string& url) const;
  void Authorize(http::Request& request, const std::string& scope) const;
  // Finds an answer to the challenge of a 401; false when there is none.
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

// A request in a message: without the query, which is a signature in the URLs that registries make.
std::string NameOf(http::Method method, std::string_view url);

// OK for 2xx; else the status of http::StatusOf with the registry's own words (OCI distribution
// "errors") and `what`. UNAVAILABLE for 429; a wait that was asked for is in RetryAfterOf().
absl::Status RegistryStatus(const http::Response& response, std::string_view what);

}  // namespace cachewarm::bundle

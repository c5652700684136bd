// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/http/client.h"
#include "lib/kube/client/client.h"
#include "lib/kube/client/config.h"

namespace cachewarm::kube {

// One sent request, for metrics.
struct RequestReport {
  std::string verb;
  std::string resource;
  int http_code = 0;  // 0: no answer
  Duration took{0};   // of a watch: until its response headers arrived
};

struct HttpClientOptions {
  ClusterConfig config;
  Duration unary_timeout{15'000};  // limit of silence in Do()
  // Limit of silence in a watch. Servers send bookmarks about once a minute without guaranteeing
  // it.
  Duration watch_timeout{120'000};
  int tries = 4;  // attempts of one idempotent Do()
  // Fits one object of the largest size that a server accepts (watch_event.h); lists request fewer
  // items per page (watcher.h).
  size_t response_bytes_max = 16U << 20U;
  // Called after every request on the caller's thread; may be empty. Must not throw.
  std::function<void(const RequestReport&)> on_request;
};

// Returns the client of a real API server. `http` and `clock` must outlive it. Reads the token file
// again when its content is older than 60 s and when the server answers 401.
std::unique_ptr<Client> MakeHttpClient(http::Client& http, const Clock& clock, Random random,
                                       HttpClientOptions options);

}  // namespace cachewarm::kube

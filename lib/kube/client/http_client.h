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

// One request as it went over the wire: for metrics.
struct RequestReport {
  std::string verb;
  std::string resource;
  int http_code = 0;  // 0: no answer
  Duration took{0};   // for a watch: until its head arrived
};

struct HttpClientOptions {
  ClusterConfig config;
  Duration unary_timeout{15'000};  // longest silence in Do()
  // Longest silence of a watch. Bookmarks come about once a minute but are not promised.
  Duration watch_timeout{120'000};
  int tries = 4;  // of one idempotent Do()
  // Room for one object as large as a server takes (watch_event.h); lists ask for fewer
  // (watcher.h).
  size_t answer_bytes_max = 16U << 20U;
  // Called after every request, on the caller's thread; may be empty. Must not throw.
  std::function<void(const RequestReport&)> on_request;
};

// The client of a real API server over `http`. `http`, `clock` must outlive it. The token file is
// read again when its content is older than 60 s and when the server answers 401.
std::unique_ptr<Client> MakeHttpClient(http::Client& http, const Clock& clock, Random random,
                                       HttpClientOptions options);

}  // namespace cachewarm::kube

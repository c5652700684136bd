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
  int http_code = 0;  // 0: there was no response
  Duration took{0};   // for a watch: until the response headers arrived
};

struct HttpClientOptions {
  ClusterConfig config;
  Duration unary_timeout{15'000};  // Do() fails if no byte arrives for this long
  // A watch ends if no byte arrives for this long. This can happen without a fault: servers send
  // bookmarks about once a minute, but do not guarantee them.
  Duration watch_timeout{120'000};
  int tries = 4;  // maximum attempts of Do() and DoList() if a request may be retried
  // Largest accepted response in bytes; every single object fits (watch_event.h). If a page of a
  // list does not fit, the Watcher requests fewer items per page (watcher.h).
  size_t response_bytes_max = 16U << 20U;
  // Called after every request on the caller's thread; may be empty. Must not throw.
  std::function<void(const RequestReport&)> on_request;
};

// Returns a client that sends requests to an API server by HTTP. `http` and `clock` must outlive
// the client. The client reads the token file again when the last reading is older than 60 s, and
// when the server answers 401.
std::unique_ptr<Client> MakeHttpClient(http::Client& http, const Clock& clock, Random random,
                                       HttpClientOptions options);

}  // namespace cachewarm::kube

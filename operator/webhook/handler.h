// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/http/server.h"
#include "operator/metrics.h"
#include "operator/webhook/pod_injection.h"

namespace cachewarm::webhook {

// Path to which the API server posts AdmissionReviews.
inline constexpr std::string_view kPath = "/pods";

// Returns the warmups of a namespace ordered by name. Called on the server's threads; must not
// block.
using WarmupsOf = std::function<std::vector<Warmup>(std::string_view ns)>;

struct HandlerDependencies {
  WarmupsOf warmups;
  std::string root;  // root directory of the agents, as in the admission policy
  const Clock& clock;
  const op::Metrics& metrics;
};

// Returns a handler that answers AdmissionReviews from the watched CacheWarmups, without I/O. HTTP
// errors: 405 for any method but POST; 400 with the reason for a body that is not the review of a
// new pod. Thread-safe.
http::Handler MakeHandler(HandlerDependencies deps);

}  // namespace cachewarm::webhook

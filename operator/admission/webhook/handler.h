// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/http/server.h"
#include "operator/admission/webhook/pod_injection.h"
#include "operator/metrics.h"

namespace cachewarm::webhook {

// Where the API server posts its questions.
inline constexpr std::string_view kPath = "/pods";

// The warmups of a namespace, in the order of their names. Called on the server's threads; must not
// block.
using WarmupsOf = std::function<std::vector<Warmup>(std::string_view ns)>;

struct HandlerDependencies {
  WarmupsOf warmups;
  std::string root;  // of the agents, as in the admission policy
  const Clock& clock;
  const op::Metrics& metrics;
};

// Answers an AdmissionReview from the watched CacheWarmups, without I/O. 405 for anything
// but POST, 400 with the reason for what is no review of a new pod. Thread-safe.
http::Handler MakeHandler(HandlerDependencies deps);

}  // namespace cachewarm::webhook

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/cluster/named_object.h"
#include "cli/lint/pod_template.h"
#include "lib/base/clock.h"
#include "lib/kube/client/client.h"

namespace cachewarm::cli {

struct LintSource {
  kube::Client& client;
  const Clock& clock;
  std::string ns;
  std::function<void(const std::string&)> on_note;  // a sentence about something not checked
};

// Reads the named objects with their pod templates, the Services of the namespace and the median
// cold starts of its CacheWarmups. Of a CacheWarmup, reads its template or its workload. If
// Services or CacheWarmups cannot be listed, reports a note and continues. Errors: NOT_FOUND,
// FAILED_PRECONDITION if an object has no pod template; the API server's error.
absl::Status ReadLintObjects(const LintSource& source, const std::vector<NamedObject>& objects,
                             lint::Input& input, std::stop_token stop);

}  // namespace cachewarm::cli

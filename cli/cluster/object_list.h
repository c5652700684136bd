// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/kube/client/client.h"
#include "lib/kube/core/resource.h"

namespace cachewarm::cli {

using AddObject = std::function<absl::Status(const codec::Json& object)>;

// Passes every object of a resource in the namespace `ns` (empty: in all namespaces) to `add`, some
// of them more than once if the list expires. Errors: that of `add`, after the current page; the
// API server's error; CANCELLED if `stop` is requested.
absl::Status ForEachObject(kube::Client& client, const kube::Resource& resource, const Clock& clock,
                           const AddObject& add, std::stop_token stop, const std::string& ns = "");

}  // namespace cachewarm::cli

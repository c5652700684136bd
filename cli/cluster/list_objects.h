// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/client/client.h"
#include "lib/kube/core/resource.h"

namespace cachewarm::cli {

// Receives the objects of a list. `on_restart`, if set, is called before the objects of the first
// page, and again if the list expired and begins again: objects received before are then repeated.
struct ListedObjects {
  std::function<absl::Status(const codec::Json& object)> on_object;
  std::function<void()> on_restart;
};

// Passes every object of a resource in the namespace `ns` (empty: all) to `listed`, page by page.
// Errors: that of `on_object`, or the API server's, both with the resource's name; CANCELLED.
absl::Status ForEachObject(kube::Client& client, const kube::Resource& resource,
                           const std::string& ns, const Clock& clock, const ListedObjects& listed,
                           std::stop_token stop);

}  // namespace cachewarm::cli

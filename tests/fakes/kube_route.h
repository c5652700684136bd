// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lib/kube/core/request.h"
#include "lib/kube/core/resource.h"

namespace cachewarm::fakes {

// The target of a request, parsed from its path and query.
struct KubeRoute {
  const kube::Resource* resource = nullptr;
  std::string ns;
  std::string name;  // empty: the collection
  std::string subresource;
  std::map<std::string, std::string> query;  // decoded
};

// nullopt: no such resource (404).
std::optional<KubeRoute> RouteOf(const kube::Request& request);

}  // namespace cachewarm::fakes

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "absl/status/statusor.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/client/client.h"
#include "lib/kube/core/resource.h"

namespace cachewarm::kube {

enum class Presence {
  kServed,     // the API server knows the kind; if listing was tried, it succeeded
  kAbsent,     // the API server does not know the kind
  kForbidden,  // the kind exists, and RBAC forbids listing it
};

// Returns true if `listed`, an APIResourceList of the resource's group and version, contains the
// resource.
bool ListsResource(const codec::Json& listed, const Resource& resource);

// Returns whether the API server serves a kind, by discovery of the group and version. With
// `may_list`, also lists one item, which detects kForbidden. After an error it is unknown whether
// the kind is served.
absl::StatusOr<Presence> LookUp(Client& client, const Resource& resource, bool may_list,
                                std::stop_token stop);

}  // namespace cachewarm::kube

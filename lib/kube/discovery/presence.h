// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>

#include "absl/status/statusor.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/client/client.h"
#include "lib/kube/core/resource.h"

namespace cachewarm::kube {

enum class Presence {
  kServed,     // it can be listed
  kAbsent,     // the API server does not know the kind
  kForbidden,  // it is there, and we may not list it
};

// True when `listed`, an APIResourceList of the resource's group and version, names it.
bool Names(const codec::Json& listed, const Resource& resource);

// Asks the API server: discovery of the group and version, then, with `may_list`, one list of a
// single item. An error says nothing about the kind, only that the question was not answered.
absl::StatusOr<Presence> LookUp(Client& client, const Resource& resource, bool may_list,
                                std::stop_token stop);

}  // namespace cachewarm::kube

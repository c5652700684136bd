// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/client/client.h"

namespace cachewarm::kube {

struct GatePatch {
  const api::Pod& pod;
  const codec::Json& operations;  // of api::gate::ReleasePatch(), and more where somebody has more
  std::string_view manager;       // field manager
};

// Lets go of a held pod. True: this call did it. False: there was nothing left to do, the pod is
// gone, replaced by another of its name, or free already. An error: it is held still, or unknown.
absl::StatusOr<bool> ReleaseGate(Client& client, const GatePatch& patch, std::stop_token stop);

}  // namespace cachewarm::kube

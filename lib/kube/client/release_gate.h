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

// Whether the pod is still there and waits at our gate. True also where nobody can say.
bool IsStillHeld(Client& client, const api::Pod& pod, std::stop_token stop);

// Lets go of a held pod, without what `operations` note on it where that is refused. True: this
// call did it. False: there was nothing left to do, the pod is gone, replaced by another of its
// name, or free already. An error: it is held still, or unknown.
absl::StatusOr<bool> ReleaseGate(Client& client, const GatePatch& patch, std::stop_token stop);

}  // namespace cachewarm::kube

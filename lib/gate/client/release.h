// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/client/client.h"

namespace cachewarm::gate {

struct GatePatch {
  const api::Pod& pod;
  const codec::Json& operations;  // result of ReleasePatch(), possibly with operations added
  std::string_view manager;       // field manager
};

// Returns true if the pod exists and still has the gate of cachewarm, or if that cannot be
// determined.
bool IsStillHeld(kube::Client& client, const api::Pod& pod, std::stop_token stop);

// Releases a held pod; if the annotations in `operations` are rejected, releases it without them.
// Returns true if this call released the pod, false if the pod is gone, replaced, or already
// released. After an error the pod is still held, or its state is unknown.
absl::StatusOr<bool> Release(kube::Client& client, const GatePatch& patch, std::stop_token stop);

}  // namespace cachewarm::gate

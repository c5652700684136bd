// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "operator/plan/plan_context.h"

// A capture consists of the operator's request in the spec of a NodeCache and the agent's answer in
// its status. These functions find both and make the request. Pure.
namespace cachewarm::plan {

// The pod whose directory is captured.
struct CaptureTarget {
  std::string_view pod_uid;
  std::string_view node;
};

// The objects of one capture. Pointers are null if the object does not exist; they point into the
// Context.
struct CaptureHandshake {
  const PodView* pod = nullptr;
  size_t node_index = 0;
  const NodeState* node = nullptr;
  const api::CaptureRequest* request = nullptr;  // the operator's request in the NodeCache
  const api::CaptureStatus* answer = nullptr;    // the agent's answer to `request`
  std::string id;                                // id of the request, even if `request` is null
};

CaptureHandshake FindCaptureHandshake(const Context& context, const api::BuilderStatus& builder,
                                      const CaptureTarget& target);

// Returns the request to the agent. `handshake.pod` and its container must be set.
api::CaptureRequest MakeCaptureRequest(const Context& context, const CaptureHandshake& handshake,
                                       const api::BuilderStatus& builder);

// True if the agent has published the capture and the pod has completed its first start (see
// ReadyInGroup).
bool IsPushed(const Context& context, const CaptureHandshake& handshake,
              const api::BuilderStatus& builder);

}  // namespace cachewarm::plan

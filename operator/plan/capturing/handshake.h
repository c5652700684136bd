// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "operator/plan/plan_context.h"

// One capture between the operator and the agent of a node. Pure.
namespace cachewarm::plan {

// The pod whose directory is captured.
struct CaptureTarget {
  std::string_view pod_uid;
  std::string_view node;
};

// The objects of one capture, looked up by the names in status.builders. Points into the
// PlanContext.
struct CaptureHandshake {
  const PodView* pod = nullptr;
  size_t node_index = 0;
  const NodeState* node = nullptr;
  const api::CaptureRequest* request = nullptr;  // as the NodeCache holds it
  const api::CaptureStatus* answer = nullptr;    // to `request`
  std::string id;
};

CaptureHandshake FindCaptureHandshake(const PlanContext& context, const api::BuilderStatus& builder,
                                      const CaptureTarget& target);

// Makes the request to the agent. `handshake` has a pod with a container.
api::CaptureRequest MakeCaptureRequest(const PlanContext& context,
                                       const CaptureHandshake& handshake,
                                       const api::BuilderStatus& builder);

// True if the agent has published and the pod was ready at that time.
bool IsPushed(const PlanContext& context, const CaptureHandshake& handshake,
              const api::BuilderStatus& builder);

}  // namespace cachewarm::plan

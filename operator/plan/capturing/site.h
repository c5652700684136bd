// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "operator/plan/round.h"

// One capture between the operator and the agent of a node. Pure.
namespace cachewarm::plan {

// Whose directory is captured.
struct Captive {
  std::string_view pod_uid;
  std::string_view node;
};

// What the hand-shake is about, found again from the names in status.builders. Points into the
// Round.
struct Site {
  const PodView* pod = nullptr;
  size_t node_index = 0;
  const NodeState* node = nullptr;
  const api::CaptureRequest* asked = nullptr;  // as the NodeCache holds it
  const api::CaptureStatus* answer = nullptr;  // to `asked`
  std::string id;
};

Site FindSite(const Round& round, const api::BuilderStatus& builder, const Captive& captive);

// What the agent is asked for. The site has a pod with a container.
api::CaptureRequest Ask(const Round& round, const Site& site, const api::BuilderStatus& builder);

// The agent has published, and the pod was ready by then.
bool IsPushed(const Round& round, const Site& site, const api::BuilderStatus& builder);

}  // namespace cachewarm::plan

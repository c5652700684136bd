// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "lib/api/kubernetes.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"

// Renders the operator's writes to Nodes. Pure.
namespace cachewarm::render {

// Returns the JSON patch (RFC 6902) that removes the cachewarm startup taints. Tests the node's uid
// and each taint's index, so the API server rejects the whole patch (422) if the taints have
// changed.
codec::Json StartupTaintPatch(const api::Node& node);

// Returns the server-side apply of nodes/status that sets the cachewarm condition, or removes the
// condition for nullopt. If `node`, the present node, has the condition with the same status, keeps
// the condition's lastTransitionTime.
codec::Json NodeConditionApply(const codec::Json& node,
                               const std::optional<api::NodeCondition>& condition, WallTime now);

}  // namespace cachewarm::render

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "lib/api/kubernetes.h"
#include "lib/base/clock.h"
#include "lib/codec/json_fwd.h"

// What the operator writes to a Node, and nothing else of it. Pure.
namespace cachewarm::render {

// The JSON patch (RFC 6902) that takes our startup taints away: tests the node's uid and that each
// stands where it was, so that it fails as a whole (422) when the taints have changed in between.
codec::Json StartupTaintPatch(const api::Node& node);

// The server-side apply of nodes/status that sets our condition, or with nullopt removes it.
// `node` as it is now: lastTransitionTime stays while the condition's status does.
codec::Json NodeConditionApply(const codec::Json& node,
                               const std::optional<api::NodeCondition>& condition, WallTime now);

}  // namespace cachewarm::render

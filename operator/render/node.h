// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/api/kubernetes.h"
#include "lib/codec/json_fwd.h"

// Renders the operator's writes to Nodes. Pure.
namespace cachewarm::render {

// Returns the JSON patch (RFC 6902) that removes the cachewarm startup taints. Tests the node's uid
// and each taint's index, so the API server rejects the whole patch (422) if the taints have
// changed.
codec::Json StartupTaintPatch(const api::Node& node);

}  // namespace cachewarm::render

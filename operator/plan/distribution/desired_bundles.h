// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "operator/plan/bundles.h"

namespace cachewarm::plan {

// Returns the bundles that every node of `target` (an index into Context::targets) should have;
// at most 16, sorted by key. These are the bundle of each key in use there, and one other bundle as
// a seed, which reduces compilation for a key without a bundle and after a rollback. There is no
// seed if the bundle of the template's key is suspended.
std::vector<api::WantedBundle> WantedBundles(const Context& context, const Bundles& bundles,
                                             size_t target);

// Adds to `bundles` the captured bundle of `builder`, instead of another one of the same key. For
// the node on which that bundle is proven.
void AddBundleToProve(const api::BuilderStatus& builder, std::vector<api::WantedBundle>& bundles);

}  // namespace cachewarm::plan

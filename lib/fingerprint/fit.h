// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/fingerprint/key.h"

namespace cachewarm::fingerprint {

// The properties of a published bundle that decide where it fits.
struct BundleFacts {
  KeyFactors factors;
  // True if the bundle holds host machine code of factors.cpu_class (Placement::native in
  // lib/caches). If false, it fits nodes of its GPU type with any CPU class.
  bool native_host_code = true;
  WallTime published{};
  std::string digest;
};

// True if pods on a node of this GPU type and CPU class may read the bundle. No other code may
// decide this.
bool FitsNode(const BundleFacts& bundle, std::string_view gpu_type, std::string_view cpu_class);

// True if the bundle has the GPU type, image, device count and container of `wanted` and fits its
// CPU class.
bool Serves(const BundleFacts& bundle, const KeyFactors& wanted);

// Chooses the bundle for `wanted` among those that serve it: the newest one of the same CPU class,
// otherwise the newest one without native host code. Returns nullptr if there is none.
const BundleFacts* ChooseBundle(const std::vector<BundleFacts>& bundles, const KeyFactors& wanted);

// Chooses the seed: the bundle to use while the key `wanted` has no bundle of its own. Candidates
// are the `bundles` of one warmup, of any image, that fit the GPU type and CPU class. Prefers the
// same container, then the same device count, because engines key on both; then the newest bundle,
// then the greater digest. Returns nullptr if there is none.
const BundleFacts* ChooseSeed(const std::vector<BundleFacts>& bundles, const KeyFactors& wanted);

}  // namespace cachewarm::fingerprint

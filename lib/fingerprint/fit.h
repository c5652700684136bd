// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/fingerprint/key.h"

namespace cachewarm::fingerprint {

// A published bundle as far as fit is concerned.
struct BundleFacts {
  KeyFactors factors;
  // It holds host machine code of factors.cpu_class (lib/caches says which files are). Without it
  // the bundle fits every CPU class of its GPU type.
  bool native_host_code = true;
  WallTime published{};
  std::string digest;
};

// May this bundle's bytes be shown to pods on a node of this GPU type and CPU class? The only
// place that decides it.
bool FitsNode(const BundleFacts& bundle, std::string_view gpu_type, std::string_view cpu_class);

// Is it the bundle of `wanted`: same GPU type, image, device count and container, and fits the
// CPU class?
bool Serves(const BundleFacts& bundle, const KeyFactors& wanted);

// The bundle that serves `wanted`: the newest one of its own CPU class, else the newest one
// without native host code. nullptr when there is none.
const BundleFacts* ChooseBundle(const std::vector<BundleFacts>& bundles, const KeyFactors& wanted);

// The seed of a key without a bundle: of one warmup's `bundles` the newest that fits the GPU type
// and CPU class, whatever its image; same container and device count first, because engines key
// on both. Ties go to the greater digest. nullptr when there is none.
const BundleFacts* ChooseSeed(const std::vector<BundleFacts>& bundles, const KeyFactors& wanted);

}  // namespace cachewarm::fingerprint

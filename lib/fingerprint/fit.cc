// SPDX-License-Identifier: Apache-2.0
#include "lib/fingerprint/fit.h"

#include <tuple>

namespace cachewarm::fingerprint {
namespace {

bool IsNewer(const BundleFacts& a, const BundleFacts& b) {
  return std::tie(a.published, a.digest) > std::tie(b.published, b.digest);
}

// Returns how well a seed matches `wanted`. ChooseSeed() takes the highest score, and the newest
// bundle among equal scores.
int MatchScore(const BundleFacts& bundle, const KeyFactors& wanted) {
  return (bundle.factors.container == wanted.container ? 2 : 0) +
         (bundle.factors.devices == wanted.devices ? 1 : 0);
}

}  // namespace

bool FitsNode(const BundleFacts& bundle, std::string_view gpu_type, std::string_view cpu_class) {
  return bundle.factors.gpu_type == gpu_type &&
         (!bundle.native_host_code || bundle.factors.cpu_class == cpu_class);
}

bool Serves(const BundleFacts& bundle, const KeyFactors& wanted) {
  return FitsNode(bundle, wanted.gpu_type, wanted.cpu_class) &&
         bundle.factors.image == wanted.image && bundle.factors.devices == wanted.devices &&
         bundle.factors.container == wanted.container;
}

const BundleFacts* ChooseBundle(const std::vector<BundleFacts>& bundles, const KeyFactors& wanted) {
  const BundleFacts* best = nullptr;
  const auto same_class = [&wanted](const BundleFacts& bundle) {
    return bundle.factors.cpu_class == wanted.cpu_class;
  };
  for (const BundleFacts& bundle : bundles) {
    if (!Serves(bundle, wanted)) {
      continue;
    }
    if (best == nullptr || same_class(bundle) > same_class(*best) ||
        (same_class(bundle) == same_class(*best) && IsNewer(bundle, *best))) {
      best = &bundle;
    }
  }
  return best;
}

const BundleFacts* ChooseSeed(const std::vector<BundleFacts>& bundles, const KeyFactors& wanted) {
  const BundleFacts* best = nullptr;
  for (const BundleFacts& bundle : bundles) {
    if (!FitsNode(bundle, wanted.gpu_type, wanted.cpu_class)) {
      continue;
    }
    const int score = MatchScore(bundle, wanted);
    if (best == nullptr || score > MatchScore(*best, wanted) ||
        (score == MatchScore(*best, wanted) && IsNewer(bundle, *best))) {
      best = &bundle;
    }
  }
  return best;
}

}  // namespace cachewarm::fingerprint

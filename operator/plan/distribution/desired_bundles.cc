// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/distribution/desired_bundles.h"

#include <algorithm>
#include <set>

namespace cachewarm::plan {

namespace {

constexpr size_t kBundlesPerNodeMax = 16;

std::vector<api::WantedBundle> Sorted(std::vector<api::WantedBundle> bundles) {
  std::sort(bundles.begin(), bundles.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  return bundles;
}

}  // namespace

std::vector<api::WantedBundle> WantedBundles(const Context& context, const Bundles& bundles,
                                             size_t target) {
  std::vector<api::WantedBundle> out;
  std::set<Digest> digests;
  const auto add = [&](const api::BundleStatus& bundle) {
    if (out.size() < kBundlesPerNodeMax && digests.insert(bundle.digest).second) {
      out.push_back({.key = bundle.key, .digest = bundle.digest, .bytes = bundle.bytes});
    }
  };
  for (const bool current : {true, false}) {
    for (const LiveKey& key : context.keys) {
      const api::BundleStatus* bundle =
          key.target == target && key.current == current ? bundles.For(key) : nullptr;
      if (bundle != nullptr) {
        add(*bundle);
      }
    }
  }
  // If the bundle of the template's key is suspended, the starts that hung with it also had the
  // files of a seed, so the next start gets neither.
  if (std::any_of(context.keys.begin(), context.keys.end(), [&](const LiveKey& key) {
        return key.target == target && key.current && bundles.IsWithoutSuspended(key);
      })) {
    return Sorted(std::move(out));
  }
  auto others = bundles.Facts();
  std::erase_if(others, [&](const fingerprint::BundleFacts& each) {
    return std::any_of(digests.begin(), digests.end(),
                       [&](const Digest& digest) { return digest.ToString() == each.digest; });
  });
  const api::KeyFactors wanted{.gpu_type = context.targets[target].gpu_type,
                               .cpu_class = context.targets[target].cpu_class,
                               .image = context.pod_template.factors.image,
                               .devices = context.pod_template.factors.devices,
                               .container = context.pod_template.factors.container};
  if (const auto* seed = fingerprint::ChooseSeed(others, wanted)) {
    for (const api::BundleStatus& bundle : bundles.published()) {
      if (bundle.digest.ToString() == seed->digest) {
        add(bundle);
        break;
      }
    }
  }
  return Sorted(std::move(out));
}

void AddBundleToProve(const api::BuilderStatus& builder, std::vector<api::WantedBundle>& bundles) {
  const api::CapturedBundle& captured = *builder.captured;
  std::erase_if(bundles, [&](const api::WantedBundle& each) {
    return each.key == builder.key || each.digest == captured.digest;
  });
  bundles.resize(std::min(bundles.size(), kBundlesPerNodeMax - 1));
  bundles.push_back({.key = builder.key, .digest = captured.digest, .bytes = captured.bytes});
  bundles = Sorted(std::move(bundles));
}

}  // namespace cachewarm::plan

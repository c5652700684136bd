// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/bundles.h"

#include <algorithm>
#include <utility>

#include "lib/api/reasons.h"
#include "lib/fingerprint/key.h"

namespace cachewarm::plan {

namespace {

// Returns the key factors of a bundle. status.bundles does not store the device count and the
// container. They are taken from the template, or from another key in use, if that results in the
// bundle's key. Otherwise they are -1 and "", so that the bundle can only be a seed.
api::KeyFactors FactorsOf(const Context& context, const api::BundleStatus& bundle) {
  api::KeyFactors factors{.gpu_type = bundle.gpu_type,
                          .cpu_class = bundle.cpu_class,
                          .image = bundle.image,
                          .devices = context.pod_template.factors.devices,
                          .container = context.pod_template.factors.container};
  const auto key = fingerprint::KeyOf(factors);
  if (!key.ok() || *key != bundle.key) {
    for (const LiveKey& live : context.keys) {
      if (live.key == bundle.key) {
        return live.factors;
      }
    }
    factors.devices = -1;
    factors.container.clear();
  }
  return factors;
}

}  // namespace

Bundles::Bundles(const Context& context, std::vector<api::BundleStatus> published,
                 std::vector<api::SuspendedBundle> suspended)
    : context_(context), published_(std::move(published)), suspended_(std::move(suspended)) {
  Index();
}

Bundles::Bundles(const Context& context)
    : Bundles(context, context.in.warmup.status.bundles,
              context.in.warmup.status.suspended_bundles) {}

void Bundles::Index() {
  serving_.clear();
  const auto facts = Facts();
  for (const LiveKey& key : context_.keys) {
    if (const fingerprint::BundleFacts* chosen = fingerprint::ChooseBundle(facts, key.factors)) {
      serving_.emplace(key.key, static_cast<size_t>(chosen - facts.data()));
    }
  }
}

const api::BundleStatus* Bundles::For(const LiveKey& key) const {
  const auto known = serving_.find(key.key);
  return known == serving_.end() ? nullptr : &published_[known->second];
}

const api::SuspendedBundle* Bundles::FindSuspended(const Digest& digest) const {
  const auto found =
      std::find_if(suspended_.begin(), suspended_.end(),
                   [&](const api::SuspendedBundle& each) { return each.digest == digest; });
  return found == suspended_.end() ? nullptr : &*found;
}

const api::SuspendedBundle* Bundles::LastSuspendedFor(const LiveKey& key) const {
  const api::SuspendedBundle* last = nullptr;
  for (const api::SuspendedBundle& bundle : suspended_) {
    // A bundle without native host code also served the keys of other CPU classes.
    const bool served =
        bundle.key == key.key || (!bundle.native && bundle.gpu_type == key.factors.gpu_type &&
                                  bundle.image == key.factors.image);
    if (served && (last == nullptr || last->suspended_time <= bundle.suspended_time)) {
      last = &bundle;
    }
  }
  return last;
}

bool Bundles::IsWithoutSuspended(const LiveKey& key) const {
  return For(key) == nullptr && LastSuspendedFor(key) != nullptr;
}

bool Bundles::HasSuspendedFiles(const Digest& digest) const {
  if (FindSuspended(digest) != nullptr) {
    return true;
  }
  const std::string text = digest.ToString();
  return std::none_of(published_.begin(), published_.end(),
                      [&](const api::BundleStatus& each) { return each.digest == digest; }) &&
         std::any_of(suspended_.begin(), suspended_.end(), [&](const api::SuspendedBundle& each) {
           return std::find(each.extends.begin(), each.extends.end(), text) != each.extends.end();
         });
}

std::vector<fingerprint::BundleFacts> Bundles::Facts() const {
  std::vector<fingerprint::BundleFacts> out;
  for (const api::BundleStatus& bundle : published_) {
    out.push_back({.factors = FactorsOf(context_, bundle),
                   .native_host_code = bundle.native,
                   .published = bundle.published_time,
                   .digest = bundle.digest.ToString()});
  }
  return out;
}

void Bundles::Publish(api::BundleStatus bundle) {
  const auto present = std::find_if(published_.begin(), published_.end(),
                                    [&](const auto& each) { return each.key == bundle.key; });
  if (present == published_.end()) {
    published_.push_back(std::move(bundle));
  } else {
    *present = std::move(bundle);
  }
  Index();
}

void Bundles::Replace(std::vector<api::BundleStatus> published) {
  published_ = std::move(published);
  Index();
}

void Bundles::Suspend(api::SuspendedBundle bundle) {
  if (suspended_.size() >= api::kSuspendedBundlesMax) {
    suspended_.erase(suspended_.begin());
  }
  suspended_.push_back(std::move(bundle));
}

void Bundles::ForgetRefused() {
  std::erase_if(suspended_,
                [](const api::SuspendedBundle& bundle) { return bundle.hung_starts.empty(); });
}

bool IsWarm(const Context& context, const Bundles& bundles, const NodeState& node,
            const PodFactors& factors) {
  const LiveKey* key = FindKey(context, node.target, factors);
  const api::BundleStatus* bundle = key == nullptr ? nullptr : bundles.For(*key);
  return bundle != nullptr && IsServed(node, *bundle);
}

bool IsExhausted(const Context& context, const Bundles& bundles, const LiveKey& key,
                 const api::BuilderStatus* last) {
  return bundles.For(key) == nullptr && last != nullptr &&
         last->state == api::BuilderState::kFailed && last->reason != api::reason::kBuilderLost &&
         last->attempt > context.in.warmup.spec.compile.backoff_limit;
}

}  // namespace cachewarm::plan

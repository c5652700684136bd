// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "lib/base/digest.h"
#include "lib/fingerprint/fit.h"
#include "operator/plan/context.h"

// The bundles of a warmup, and the key that each of them serves. Pure.
namespace cachewarm::plan {

// A value: each stage that changes bundles returns a changed copy. The Context must outlive it.
class Bundles {
 public:
  Bundles(const Context& context, std::vector<api::BundleStatus> published,
          std::vector<api::SuspendedBundle> suspended);
  // The bundles in the present status of the warmup.
  explicit Bundles(const Context& context);

  const std::vector<api::BundleStatus>& published() const { return published_; }
  const std::vector<api::SuspendedBundle>& suspended() const { return suspended_; }

  // Returns the published bundle that serves `key`, a key of the Context; nullptr if there is none.
  const api::BundleStatus* For(const LiveKey& key) const;
  // Returns the suspended bundle with this digest; nullptr if there is none.
  const api::SuspendedBundle* FindSuspended(const Digest& digest) const;
  // Returns the newest suspended bundle that served `key`; nullptr if there is none.
  const api::SuspendedBundle* LastSuspendedFor(const LiveKey& key) const;
  // True if `key` has no bundle because its last one is suspended.
  bool IsWithoutSuspended(const LiveKey& key) const;
  // True if a tree with the bundle may have files of a suspended bundle: that bundle, or one that
  // it extends and that is not published again.
  bool HasSuspendedFiles(const Digest& digest) const;
  // Returns the published bundles, in their order, in the form that lib/fingerprint takes.
  std::vector<fingerprint::BundleFacts> Facts() const;

  // Adds `bundle`, or replaces the published bundle of the same key.
  void Publish(api::BundleStatus bundle);
  // Replaces all published bundles.
  void Replace(std::vector<api::BundleStatus> published);
  // Adds `bundle` to the suspended ones, and drops the oldest of them if there are too many.
  void Suspend(api::SuspendedBundle bundle);
  // Removes the bundles that an engine refused from the suspended ones.
  void ForgetRefused();

 private:
  void Index();

  const Context& context_;
  std::vector<api::BundleStatus> published_;
  std::vector<api::SuspendedBundle> suspended_;
  std::map<std::string, size_t, std::less<>> serving_;  // by key: an index into published_
};

// True if the bundle that serves pods of `factors` on this node, or one that it extends, is active
// there.
bool IsWarm(const Context& context, const Bundles& bundles, const NodeState& node,
            const PodFactors& factors);

// True if there is no bundle for the key, and `last`, its last build (null: none), failed more
// often in a row than spec.compile.backoffLimit allows.
bool IsExhausted(const Context& context, const Bundles& bundles, const LiveKey& key,
                 const api::BuilderStatus* last);

}  // namespace cachewarm::plan

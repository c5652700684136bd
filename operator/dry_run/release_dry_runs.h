// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "lib/api/kubernetes.h"
#include "lib/base/clock.h"
#include "lib/kube/client/client.h"
#include "operator/apply/release_refusals.h"
#include "operator/model/snapshot.h"

namespace cachewarm::dry_run {

// Sends the release of a pod with dryRun=All, at most once per namespace and hour while the API
// server accepts it, and records a rejection in apply::ReleaseRefusals before a pod is held.
//
// For a held pod the dry run is the release itself. For any other pod it is an update without a
// change, because a scheduling gate cannot be added to an existing pod: a policy that rejects such
// an update rejects every release. A policy may reject the release alone, so the first held pod of
// a namespace gets a dry run of its own. State is in memory only. Thread-safe.
class ReleaseDryRuns {
 public:
  struct Dependencies {
    kube::Client& client;
    const Clock& clock;
    apply::ReleaseRefusals& refusals;
  };

  // All references must outlive this object.
  explicit ReleaseDryRuns(Dependencies deps) : deps_(deps) {}

  // Returns true if a dry run of `pod` may show something that the last answer in its namespace did
  // not: there was none, it is old, or `pod` is the first held pod.
  bool IsDue(const api::Pod& pod) const;

  // Sends the dry run if it is due. Returns after at most kDryRunLimit, without retries. An answer
  // that shows nothing (a webhook that fails, a pod that is gone) is repeated after a minute.
  void Run(const api::Pod& pod, std::stop_token stop);

  // Returns the time until a rejection in the namespace must be confirmed, so that it does not
  // expire while it lasts; nullopt if the last answer was no rejection.
  std::optional<Duration> ConfirmAfter(const std::string& ns) const;

 private:
  struct Answer {
    WallTime time{};
    model::DryRunResult result = model::DryRunResult::kUnknown;
    bool was_held = false;  // the answer is about the release of a held pod
  };

  bool IsDueLocked(const api::Pod& pod) const;

  Dependencies deps_;
  mutable std::mutex mutex_;
  std::map<std::string, Answer> answers_;  // by namespace
};

}  // namespace cachewarm::dry_run

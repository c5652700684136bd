// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <semaphore>
#include <span>
#include <stop_token>

#include "absl/status/status.h"
#include "lib/base/log.h"
#include "lib/kube/client/client.h"
#include "lib/kube/runtime/event_recorder.h"
#include "operator/apply/job_refusals.h"
#include "operator/metrics.h"
#include "operator/plan/plan.h"

namespace cachewarm::apply {

// What the executor works with. All of it must outlive it.
struct Means {
  kube::Client& client;
  kube::EventSink& events;
  const op::Metrics& metrics;
  Log& log;
  JobRefusals& job_refusals;
  // Requests that may be under way at once, of all plans together: releases, NodeCaches,
  // annotations. Each has a connection, which takes 0.1 MB.
  size_t width = 16;
};

// Carries out a Plan, in the order of its members but for the Jobs, which go last: no pod is held
// because of a Job that cannot be made. Decides nothing. Thread-safe.
//
// The status goes first and on condition that nobody wrote since the snapshot: ABORTED then, and
// nothing else is done. Afterwards a step's first error is returned and later steps are left out;
// within one step everything is tried. What is already so (a Job that exists, a pod that is gone, a
// gate that somebody else removed) is success. A Job that
// the API server refuses is no error but noted in `job_refusals`. Metrics of a step count after it
// succeeded, and a pod's release is told after it was released.
class Executor {
 public:
  explicit Executor(Means means)
      : means_(means), slots_(static_cast<std::ptrdiff_t>(means.width)) {}

  absl::Status Execute(const plan::Snapshot& snapshot, const plan::Plan& plan,
                       std::stop_token stop) const;

 private:
  struct Released;

  // Runs `each` for all indices, as many at once as there are slots, and gives the first error.
  absl::Status TryAll(size_t count, std::stop_token stop,
                      const std::function<absl::Status(size_t)>& each) const;
  absl::Status WriteStatus(const plan::Snapshot& snapshot, const plan::Plan& plan,
                           std::stop_token stop) const;
  absl::Status SetLabel(const api::CacheWarmup& warmup, bool inject, std::stop_token stop) const;
  absl::Status WriteNodes(const plan::Snapshot& snapshot, const plan::Plan& plan,
                          std::stop_token stop) const;
  absl::Status ChangeJobs(const plan::Snapshot& snapshot, const plan::Plan& plan,
                          std::stop_token stop) const;
  absl::Status Annotate(const plan::Plan& plan, std::stop_token stop) const;
  absl::Status AnnotateAny(const plan::PodAnnotation& wish, std::stop_token stop) const;
  absl::Status AnnotateHeld(const plan::PodAnnotation& wish, std::stop_token stop) const;
  absl::Status Release(const plan::Snapshot& snapshot, const plan::Plan& plan,
                       std::stop_token stop) const;
  absl::Status ReleaseAll(const plan::Snapshot& snapshot,
                          std::span<const plan::GateRelease> releases, Released& released,
                          std::stop_token stop) const;
  void Tell(const plan::EventWish& wish) const;
  void Count(const plan::Snapshot& snapshot, const plan::Plan& plan) const;

  Means means_;
  mutable std::counting_semaphore<> slots_;
};

// Removes our gate from one pod; true when this call did it, false when it was already gone.
//
// A pod that somebody may not let prefer a node (its affinity was changed meanwhile, or a policy of
// the user's forbids that) is let go without: a preference is no reason to be held. One that is to
// be kept off a node where it would break is not: that is an error, to be planned anew, and past
// its deadline controllers::HeldPods lets it go all the same.
absl::StatusOr<bool> ReleaseGate(kube::Client& client, const plan::GateRelease& release,
                                 std::stop_token stop);

}  // namespace cachewarm::apply

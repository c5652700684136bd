// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <semaphore>
#include <span>
#include <stop_token>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/client/client.h"
#include "lib/kube/runtime/event_recorder.h"
#include "lib/kube/runtime/slow_namespace_limiter.h"
#include "operator/apply/job_refusals.h"
#include "operator/metrics.h"
#include "operator/plan/plan.h"

namespace cachewarm::apply {

// What the executor works with. All of it must outlive it.
struct Dependencies {
  kube::Client& client;
  const Clock& clock;
  kube::EventSink& events;
  const op::Metrics& metrics;
  Log& log;
  JobRefusals& job_refusals;
  // Requests that may be under way at once, of all plans together: releases, NodeCaches,
  // annotations. Each has a connection, which takes 0.1 MB.
  size_t width = 16;
};

// How a plan was result out when no step failed.
struct ExecuteResult {
  size_t rejected = 0;  // what nodes and pods do not take, and will not when they are asked again
};

// Carries out a Plan, in the order of its members but for the Jobs, which go last: no pod is held
// because of a Job that cannot be made. Decides nothing. Thread-safe.
//
// The status goes first and on condition that nobody wrote since the snapshot: ABORTED then, and
// nothing else is done. Afterwards a step's first error is returned and later steps are left out;
// within one step everything is tried. What is already so (a Job that exists, a pod that is gone, a
// gate that somebody else removed) is success. What the API server refuses for good of one node or
// one pod is no error: it is logged, a line a step, and counted; a Job that it refuses is noted in
// `job_refusals`. Patches of pods wait for nobody's webhook for long (kube::SlowNamespaceLimiter). Metrics of a
// step count after it succeeded, and a pod's release is told after it was released.
class Executor {
 public:
  explicit Executor(Dependencies deps);

  absl::StatusOr<ExecuteResult> Execute(const plan::Snapshot& snapshot, const plan::Plan& plan,
                                        std::stop_token stop) const;

 private:
  struct Released;

  // Runs `each` for all indices, as many at once as there are slots. Gives how many were refused
  // for good, or the first other error.
  absl::StatusOr<size_t> TryAll(size_t count, std::stop_token stop,
                                const std::function<absl::Status(size_t)>& each) const;
  absl::Status WriteStatus(const plan::Snapshot& snapshot, const plan::Plan& plan,
                           std::stop_token stop) const;
  absl::Status SetLabel(const api::CacheWarmup& warmup, bool inject, std::stop_token stop) const;
  absl::StatusOr<size_t> WriteNodes(const plan::Snapshot& snapshot, const plan::Plan& plan,
                                    std::stop_token stop) const;
  absl::Status ChangeJobs(const plan::Snapshot& snapshot, const plan::Plan& plan,
                          std::stop_token stop) const;
  absl::StatusOr<size_t> Annotate(const plan::Plan& plan, std::stop_token stop) const;
  absl::Status AnnotateAny(const plan::PodAnnotation& request, std::stop_token stop) const;
  absl::Status AnnotateHeld(const plan::PodAnnotation& request, std::stop_token stop) const;
  absl::StatusOr<size_t> Release(const plan::Snapshot& snapshot, const plan::Plan& plan,
                                 std::stop_token stop) const;
  absl::StatusOr<size_t> ReleaseAll(const plan::Snapshot& snapshot,
                                    std::span<const plan::GateRelease> releases, Released& released,
                                    std::stop_token stop) const;
  void RecordEvent(const plan::EventRequest& request) const;
  void Count(const plan::Snapshot& snapshot, const plan::Plan& plan) const;

  Dependencies deps_;
  mutable std::counting_semaphore<> slots_;
  mutable kube::SlowNamespaceLimiter turns_;
};

// Removes our gate from one pod; true when this call did it, false when it was already gone.
//
// A pod that somebody may not let prefer a node (its affinity was changed meanwhile, or a policy of
// the user's forbids that) is let go without: a preference is no reason to be held. One that is to
// be kept off a node where it would break is not: that is an error, to be planned anew, and past
// its deadline controllers::HeldPods lets it go all the same.
// ABORTED and DEADLINE_EXCEEDED as `turns` says.
absl::StatusOr<bool> ReleaseGate(kube::Client& client, kube::SlowNamespaceLimiter& turns,
                                 const plan::GateRelease& release, std::stop_token stop);

}  // namespace cachewarm::apply

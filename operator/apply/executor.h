// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/gate/client/slow_namespace_limiter.h"
#include "lib/kube/client/client.h"
#include "lib/kube/runtime/event_recorder.h"
#include "operator/apply/job_refusals.h"
#include "operator/apply/namespace_slots.h"
#include "operator/apply/release_refusals.h"
#include "operator/metrics.h"
#include "operator/model/plan.h"

namespace cachewarm::apply {

// Dependencies of the executor. All references must outlive the executor.
struct Dependencies {
  kube::Client& client;
  const Clock& clock;
  kube::EventSink& events;
  const op::Metrics& metrics;
  Log& log;
  JobRefusals& job_refusals;
  ReleaseRefusals& release_refusals;
  // Maximum concurrent API requests, over all plans of a namespace, that release pods or write
  // NodeCaches or annotations. Each connection takes 0.1 MB. The limit is one for each namespace,
  // because requests that hang in one must not hold the slots of another.
  size_t width = 16;
};

// Result of a plan whose steps all succeeded.
struct ExecuteResult {
  // Number of requests for single nodes or pods that the API server rejected. It would reject an
  // immediate retry too.
  size_t rejected = 0;
};

// Executes the steps of a Plan in the order of its members. Makes no decisions. Thread-safe.
//
// Writes the status first. If another writer changed the warmup meanwhile, returns ABORTED
// and executes nothing else. After a failed step, skips the later steps and returns the step's
// first error. Exception: an error of the annotation step does not stop the later steps and is
// returned after them. Within one step, tries every request. These count as successful: creating a
// Job that already exists, patching a pod that was deleted, and removing a gate that is already
// gone.
//
// The rejection of a request for one node or pod is not an error: each step counts its rejections
// and logs them once. A rejected Job is recorded in `job_refusals`, a rejected release in
// `release_refusals`. gate::SlowNamespaceLimiter
// limits how long patches of pods wait for slow webhooks. Updates the metrics of a step after the
// step succeeded, and records a pod's event after its release.
class Executor {
 public:
  explicit Executor(Dependencies deps);

  absl::StatusOr<ExecuteResult> Execute(const api::CacheWarmup& warmup, const model::Plan& plan,
                                        std::stop_token stop) const;

 private:
  struct Released;

  // The requests of one step: `each` sends the request of one index below `count`, for a warmup of
  // namespace `ns`.
  struct Requests {
    const std::string& ns;
    size_t count;
    std::function<absl::Status(size_t)> each;
  };
  // Sends all requests, concurrently as far as `slots_` allows. Returns the number of rejected
  // requests, or the first error that is not a rejection.
  absl::StatusOr<size_t> TryAll(const Requests& requests, std::stop_token stop) const;
  absl::Status WriteStatus(const api::CacheWarmup& warmup, const model::Plan& plan,
                           std::stop_token stop) const;
  absl::Status SetLabel(const api::CacheWarmup& warmup, bool inject, std::stop_token stop) const;
  absl::StatusOr<size_t> WriteNodes(const api::CacheWarmup& warmup, const model::Plan& plan,
                                    std::stop_token stop) const;
  absl::Status ChangeJobs(const api::CacheWarmup& warmup, const model::Plan& plan,
                          std::stop_token stop) const;
  absl::StatusOr<size_t> Annotate(const api::CacheWarmup& warmup, const model::Plan& plan,
                                  std::stop_token stop) const;
  absl::Status AnnotateAny(const model::PodAnnotation& request, std::stop_token stop) const;
  absl::Status AnnotateHeld(const model::PodAnnotation& request, std::stop_token stop) const;
  absl::StatusOr<size_t> Release(const api::CacheWarmup& warmup, const model::Plan& plan,
                                 std::stop_token stop) const;
  absl::StatusOr<size_t> ReleaseAll(const api::CacheWarmup& warmup,
                                    std::span<const model::GateRelease> releases,
                                    Released& released, std::stop_token stop) const;
  void RecordEvent(const model::EventRequest& request) const;
  void Count(const api::CacheWarmup& warmup, const model::Plan& plan) const;

  Dependencies deps_;
  mutable NamespaceSlots slots_;
  mutable gate::SlowNamespaceLimiter turns_;
};

// Dependencies of ReleaseGate().
struct ReleaseDependencies {
  kube::Client& client;
  gate::SlowNamespaceLimiter& turns;
  ReleaseRefusals& refusals;
};

// Removes the scheduling gate from one pod. Returns true if this call removed it, false if it was
// already gone.
//
// If the API server rejects a node preference (the pod's affinity changed meanwhile, or an
// admission policy forbids it), releases the pod without the preference. If the API server rejects
// an exclusion of unusable nodes, returns the error: the next plan decides again, and
// controllers::HeldPods releases the pod past its deadline. Also returns ABORTED and
// DEADLINE_EXCEEDED of `turns`, which limits patches in slow namespaces, and ABORTED if the pod's
// gates changed meanwhile. Records in `refusals` the rejection of a release that changes no
// affinity, and every success.
absl::StatusOr<bool> ReleaseGate(const ReleaseDependencies& deps, const model::GateRelease& release,
                                 std::stop_token stop);

}  // namespace cachewarm::apply

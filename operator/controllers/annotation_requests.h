// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/client/client.h"
#include "lib/kube/runtime/controller.h"
#include "lib/kube/runtime/event_recorder.h"
#include "lib/kube/runtime/namespace_lanes.h"
#include "operator/annotations/next_step.h"
#include "operator/controllers/annotation_subject.h"
#include "operator/observe/annotation_triggers.h"
#include "operator/observe/cluster_cache.h"

namespace cachewarm::controllers {

// Workloads that are reconciled at once.
inline constexpr kube::Lanes kAnnotationLanes{.usual = 1, .slow = 4};

// Creates, updates and deletes the CacheWarmup that a workload's annotations or its namespace's
// label request; annotations::FindNextStep() decides each step. Keeps the CacheWarmup of a deleted
// Job for a time, as annotations::FindRetentionStep() decides. The work queue key is an
// observe::WorkloadKey. Never changes the workload itself. Records an event when a problem appears,
// and no further one while the problem lasts.
class AnnotationRequests {
 public:
  struct Dependencies {
    kube::Client& client;
    const Clock& clock;
    kube::EventSink& events;
    Log& log;
  };

  // All references must outlive this object.
  AnnotationRequests(const observe::ClusterCache& cluster, Dependencies deps)
      : cluster_(cluster), deps_(deps) {}

  absl::StatusOr<kube::Outcome> Reconcile(const std::string& key, std::stop_token stop);

 private:
  absl::StatusOr<kube::Outcome> Advance(const AnnotationSubject& subject, const std::string& key,
                                        std::stop_token stop);
  // Executes the next step for the CacheWarmup of a workload that does not exist. Those of other
  // kinds than Job are left to the garbage collector.
  absl::StatusOr<kube::Outcome> RetainOrDelete(const observe::WorkloadKey& workload,
                                               std::stop_token stop);
  // Executes one step. Returns the CacheWarmup after the step; null if the step deleted it.
  absl::StatusOr<kube::Object> ExecuteStep(const annotations::NextStep& decision,
                                           const kube::Object& present, std::stop_token stop);
  void RecordEvents(const kube::Object& regarding,
                    const std::vector<annotations::WorkloadNote>& notes);
  // Records an event for each problem that the last call for `key` did not have.
  void RecordNewProblems(const kube::Object& regarding, const std::string& key,
                         const std::vector<annotations::WorkloadNote>& problems);
  void Forget(const std::string& key);

  const observe::ClusterCache& cluster_;
  Dependencies deps_;
  std::mutex mutex_;
  // By work queue key: texts of the problems in the last call of RecordNewProblems().
  std::map<std::string, std::set<std::string>> reported_;
};

}  // namespace cachewarm::controllers

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/evidence/events.h"
#include "agent/steps/context.h"
#include "agent/steps/start_spans.h"
#include "agent/steps/tables.h"
#include "lib/api/node_cache.h"

namespace cachewarm::agent {

// Classifies the first start of each pod on this node by its file events. A start is evaluated
// once, after its api::StartWindow (from container start to readiness) has ended. The result stays
// in the status until the operator removes the start from the spec. Call on the sync thread.
class Starts {
 public:
  // The arguments must outlive this object. Before each Poll(), update `tables` and then `spans`
  // from the same NodeCache.spec: Tables::Update() gets its warmups, Poll() gets its starts.
  Starts(const Context& context, const Tables& tables, const StartSpans& spans)
      : context_(context), tables_(tables), spans_(spans) {}

  // Restores results that were reported before a restart. They cannot be evaluated again, because
  // the events are lost.
  void Adopt(const std::vector<api::StartEvidence>& reported);

  void Poll(const std::vector<api::StartWindow>& windows);

  std::vector<api::StartEvidence> Statuses() const;
  // Returns true while a start has not ended, so that Poll() must be called again soon.
  bool IsWaiting() const { return is_waiting_; }

 private:
  struct MountedEvents {
    EventRecord record;
    std::vector<std::string> used;  // trees with events; several if the mounted one is uncertain
  };

  MountedEvents ReadMounted(const api::StartWindow& window,
                            const std::vector<std::string>& trees) const;
  bool CompiledBefore(const api::StartWindow& window, const std::vector<std::string>& trees) const;
  bool MayMountOneOf(const std::vector<std::string>& trees, const api::StartWindow& other) const;
  api::StartEvidence Evaluate(const api::StartWindow& window,
                              const std::vector<api::StartWindow>& windows) const;

  const Context& context_;
  const Tables& tables_;
  const StartSpans& spans_;
  std::map<std::string, api::StartEvidence> evaluated_;  // by uid of the pod
  bool is_waiting_ = false;
};

// Returns true if `result` may be wrong when another pod starts or compiles at the same time: pods
// of one warmup share a directory, so the events of one pod look like those of the other.
bool IsAmbiguous(api::StartResult result);

// Returns true if the windows overlap and have the same warmup and run-as.
bool Overlap(const api::StartWindow& a, const api::StartWindow& b);

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/cache_warmup.h"
#include "operator/plan/values.h"

// The parts of a Plan to which more than one stage contributes. Each stage returns its own, and
// Decide() joins them in the order of the stages. Pure.
namespace cachewarm::plan {

struct Effects {
  std::vector<EventRequest> events;
  std::vector<PodAnnotation> annotations;
  std::vector<BuildOutcome> builds_finished;
  std::optional<WallTime> requeue_at;  // the earliest requested time

  // Requeues the warmup no later than `when`; nullopt requests no time.
  void RequeueAt(std::optional<WallTime> when);
  // Adds an event about the warmup.
  void RecordEvent(const api::CacheWarmup& warmup, bool warning, std::string_view reason,
                   std::string note);
  // Appends the effects of a later stage.
  void Join(Effects later);
};

EventRequest MakePodEvent(const api::Pod& pod, std::string_view reason, std::string note);

}  // namespace cachewarm::plan

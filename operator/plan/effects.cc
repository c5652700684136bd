// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/effects.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lib/api/names.h"

namespace cachewarm::plan {

namespace {

template <typename T>
void Append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

void Effects::RequeueAt(std::optional<WallTime> when) {
  if (when) {
    requeue_at = requeue_at ? std::min(*requeue_at, *when) : *when;
  }
}

void Effects::RecordEvent(const api::CacheWarmup& warmup, bool warning, std::string_view reason,
                          std::string note) {
  events.push_back({.regarding = {.api_version = std::string(api::kApiVersion),
                                  .kind = "CacheWarmup",
                                  .ns = warmup.ns,
                                  .name = warmup.name,
                                  .uid = warmup.uid},
                    .warning = warning,
                    .reason = std::string(reason),
                    .action = "Plan",
                    .note = std::move(note)});
}

void Effects::Join(Effects later) {
  Append(events, std::move(later.events));
  Append(annotations, std::move(later.annotations));
  Append(builds_finished, std::move(later.builds_finished));
  RequeueAt(later.requeue_at);
}

EventRequest MakePodEvent(const api::Pod& pod, std::string_view reason, std::string note) {
  return {.regarding = {.api_version = "v1",
                        .kind = "Pod",
                        .ns = pod.meta.ns,
                        .name = pod.meta.name,
                        .uid = pod.meta.uid},
          .warning = false,
          .reason = std::string(reason),
          .action = "Gate",
          .note = std::move(note)};
}

}  // namespace cachewarm::plan

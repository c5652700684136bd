// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/steps/context.h"
#include "agent/steps/tables.h"
#include "lib/api/node_cache.h"

namespace cachewarm::agent {

// What file events say about the first starts on this node. A start is judged once, after its
// window has closed, and stays in the status until the operator drops it from the spec. Called by
// the sync thread only.
class Starts {
 public:
  // `tables` must outlive it and follow the spec that Poll() is given windows of.
  Starts(const Context& context, const Tables& tables) : context_(context), tables_(tables) {}

  // What this agent had reported before it was restarted; events of that time are gone.
  void Adopt(const std::vector<api::StartEvidence>& reported);

  void Poll(const std::vector<api::StartWindow>& windows);

  std::vector<api::StartEvidence> Statuses() const;
  // True while some window has not closed.
  bool IsWaiting() const { return is_waiting_; }

 private:
  bool StartedWithoutBundle(const api::StartWindow& window) const;
  api::StartEvidence Evaluate(const api::StartWindow& window,
                              const std::vector<api::StartWindow>& windows) const;

  const Context& context_;
  const Tables& tables_;
  std::map<std::string, api::StartEvidence> evaluated_;  // by pod uid
  bool is_waiting_ = false;
};

// Two pods of one warmup that start at the same time share the directory and so its events. True
// when `result`, seen for both together, may then not be what each of them did.
bool IsAmbiguous(api::StartResult result);

// True when the windows of two pods of one warmup have time in common.
bool Overlap(const api::StartWindow& a, const api::StartWindow& b);

}  // namespace cachewarm::agent

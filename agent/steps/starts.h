// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/steps/context.h"
#include "lib/api/node_cache.h"
#include "lib/caches/cache_table.h"

namespace cachewarm::agent {

// What file events say about the first starts on this node. A start is judged once, after its
// window has closed, and stays in the status until the operator drops it from the spec. Called by
// the sync thread only.
class Starts {
 public:
  using TableOf =
      std::function<std::shared_ptr<const caches::CacheTable>(const std::string& warmup_uid)>;

  Starts(const Context& context, TableOf table_of)
      : context_(context), table_of_(std::move(table_of)) {}

  // What this agent had reported before it was restarted; events of that time are gone.
  void Adopt(const std::vector<api::StartEvidence>& reported);

  void Poll(const std::vector<api::StartWindow>& windows);

  std::vector<api::StartEvidence> Statuses() const;
  // True while some window has not closed.
  bool IsWaiting() const { return is_waiting_; }

 private:
  api::StartEvidence Judge(const api::StartWindow& window,
                           const std::vector<api::StartWindow>& windows) const;

  const Context& context_;
  TableOf table_of_;
  std::map<std::string, api::StartEvidence> judged_;  // by pod uid
  bool is_waiting_ = false;
};

// Two pods of one warmup that start at the same time share the directory and so its events. True
// when `result`, seen for both together, may then not be what each of them did.
bool IsAmbiguous(api::StartResult result);

// True when the windows of two pods of one warmup have time in common.
bool Overlap(const api::StartWindow& a, const api::StartWindow& b);

}  // namespace cachewarm::agent

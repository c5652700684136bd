// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "agent/steps/context.h"
#include "agent/sync/history.h"

namespace cachewarm::agent {

// Keeps the setbacks of bundles that are refused or damaged on the disk, so that a restarted agent
// does not fetch them again. Forgotten with the wish for the bundle, when a fetch of it succeeds,
// and by an agent of another version, with other limits or on a node of another kind, which may
// criteria otherwise. One thread.
class Quarantine {
 public:
  // `version` of this agent.
  Quarantine(const Context& context, const std::string& version);

  // Puts into `history` what an earlier process wrote down. Once, before the first plan.
  void Restore(History& history);

  // Writes down what is new in `history`, removes what is no longer there. What the disk refuses is
  // tried again by the next call. Once a turn.
  void Update(const History& history);

 private:
  void Write(const BundleName& name, const FailureState& failure);

  const Context& context_;
  const std::string criteria_;
  std::map<BundleName, FailureState> written_;
};

}  // namespace cachewarm::agent

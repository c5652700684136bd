// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "agent/steps/context.h"
#include "agent/sync/history.h"

namespace cachewarm::agent {

// Persists the failures of rejected and damaged bundles, so that a restarted agent does not fetch
// them again. A record is dropped when the spec no longer lists the bundle or a fetch succeeds. It
// is also dropped when the version of the agent, its limits, the GPU type or the CPU class changed,
// because the bundle may then be accepted. Call on one thread.
class Quarantine {
 public:
  // `version` is the version of this agent.
  Quarantine(const Context& context, const std::string& version);

  // Restores the records of an earlier process into `history`. Call once, before the first plan.
  void Restore(History& history);

  // Writes the new failures of `history` to disk and removes obsolete records. The next call
  // retries a failed write. Call once per iteration.
  void Update(const History& history);

 private:
  void Write(const BundleName& name, const FailureState& failure);

  const Context& context_;
  const std::string criteria_;
  std::map<BundleName, FailureState> written_;
};

}  // namespace cachewarm::agent

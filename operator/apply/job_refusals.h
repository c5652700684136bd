// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "operator/model/snapshot.h"

namespace cachewarm::apply {

// Remembers builder Jobs that the API server rejected. The cause is in the warmup
// (compile.overrides) or its namespace (quota), so an immediate retry would fail too; the plan
// reports the message in the status. An entry is removed once a Job of that name is created. State
// is in memory only: a new leader tries again. Thread-safe.
class JobRefusals {
 public:
  void Record(const std::string& warmup_uid, const std::string& job, std::string message);
  void Forget(const std::string& warmup_uid, const std::string& job);
  // Forgets the rejected Jobs of this warmup whose names are not in `jobs`.
  void KeepOnly(const std::string& warmup_uid, const std::set<std::string>& jobs);

  // Returns the rejected Jobs of this warmup, with `refused` set.
  std::vector<model::BuilderJob> Of(const std::string& warmup_uid) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, std::string>>
      messages_;  // the API server's message by warmup uid, then by Job name
};

}  // namespace cachewarm::apply

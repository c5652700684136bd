// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "operator/plan/snapshot.h"

namespace cachewarm::apply {

// The builder Jobs that the API server would not make, until one of that name is made: what makes
// it refuse stands in the warmup (compile.overrides) or its namespace (quota), so trying again at
// once is of no use, and the plan must know in order to tell. Memory only: a new leader asks the
// API server again. Thread-safe.
class JobRefusals {
 public:
  void Record(const std::string& warmup_uid, const std::string& job, std::string message);
  void Forget(const std::string& warmup_uid, const std::string& job);
  // Forgets those of this warmup that are not among `jobs`.
  void KeepOnly(const std::string& warmup_uid, const std::set<std::string>& jobs);

  // Those of this warmup as Jobs that were refused.
  std::vector<plan::BuilderJob> Of(const std::string& warmup_uid) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, std::string>> messages_;  // by warmup uid, job
};

}  // namespace cachewarm::apply

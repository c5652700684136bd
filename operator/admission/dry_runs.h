// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/kube/client/client.h"
#include "operator/plan/plan.h"

namespace cachewarm::admission {

// What an answer to a dry-run create says about the pod itself. Only a refusal of its content
// counts as kRefused; quota, rate limits, webhooks without dry run, failing webhooks, our own
// rights and a server that cannot be reached say nothing (kUnknown).
plan::DryRunResult Classify(const absl::Status& status);

// Rehearses pods with dryRun=All, as they are and injected, and remembers the last result of each
// warmup. Memory only: a new leader rehearses again. Thread-safe.
class DryRuns {
 public:
  // Both must outlive it.
  DryRuns(kube::Client& client, const Clock& clock) : client_(client), clock_(clock) {}

  // The last result; without one its fingerprint is empty.
  plan::AdmissionDryRun Last(const std::string& warmup_uid) const;

  // Creates both pods of `request` in `ns`, dry, and remembers the result. The pod as it is comes
  // first: when it is refused by itself, nothing can be learnt about ours.
  plan::AdmissionDryRun Run(const std::string& warmup_uid, const std::string& ns,
                            const plan::DryRunRequest& request, std::stop_token stop);

  // The same pods again, because something seems to refuse them, at most every `interval`. Nothing
  // when it is too early or nothing was rehearsed yet.
  std::optional<plan::AdmissionDryRun> Rerun(const std::string& warmup_uid, const std::string& ns,
                                             Duration interval, std::stop_token stop);

  void Forget(const std::string& warmup_uid);

 private:
  struct Entry {
    plan::DryRunRequest request;
    plan::AdmissionDryRun result;
  };

  kube::Client& client_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace cachewarm::admission

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
#include "operator/model/plan.h"

namespace cachewarm::dry_run {

// Classifies the answer to a dry-run create. Only a rejection of the pod's content is kRefused.
// Quota, rate limits, webhooks that fail or do not support dry run, missing permissions of the
// operator and an unreachable server are kUnknown.
model::DryRunResult Classify(const absl::Status& status);

// Time after which a dry-run create is cancelled and counts as kUnknown. It is not retried: the
// plan requests another dry run later.
inline constexpr Duration kDryRunLimit{3'000};

// Creates two pods with dryRun=All, one unmodified and one injected, and keeps the last result of
// each warmup. State is in memory only: a new leader repeats the dry runs. Thread-safe.
class DryRuns {
 public:
  // `client` and `clock` must outlive this object.
  DryRuns(kube::Client& client, const Clock& clock) : client_(client), clock_(clock) {}

  // Returns the last result; its fingerprint is empty if there is no result.
  model::AdmissionDryRun Last(const std::string& warmup_uid) const;

  // Creates both pods of `request` in `ns` with dryRun=All and keeps the result. Tries the
  // unmodified pod first: if the API server rejects that pod too, a rejection of the injected pod
  // proves nothing. The result has the container of the unmodified pod as the API server returned
  // it, because mutating policies and webhooks may change its image and devices.
  model::AdmissionDryRun Run(const std::string& warmup_uid, const std::string& ns,
                             const model::DryRunRequest& request, std::stop_token stop);

  // Repeats the last request of the warmup, at most once per `interval`. Call when the API server
  // seems to reject the warmup's pods. Returns nullopt if there was no request, or if `interval`
  // has not passed since the last result.
  std::optional<model::AdmissionDryRun> Rerun(const std::string& warmup_uid, const std::string& ns,
                                              Duration interval, std::stop_token stop);

  void Forget(const std::string& warmup_uid);

 private:
  struct Entry {
    model::DryRunRequest request;
    model::AdmissionDryRun result;
  };

  kube::Client& client_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace cachewarm::dry_run

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/client/client.h"
#include "lib/kube/runtime/controller.h"
#include "lib/kube/runtime/work_queue.h"
#include "operator/metrics.h"
#include "operator/model/plan.h"

namespace cachewarm::apply {

// Number of threads that read logs. A kubelet that does not answer occupies one of them for
// kLogReadLimit.
inline constexpr int kLogReadWorkers = 4;
// Time after which a read is cancelled.
inline constexpr Duration kLogReadLimit{10'000};
// Time until the second and last attempt to read a log.
inline constexpr Duration kLogReadRetry{15'000};
// Maximum number of logs that wait or whose answer is kept, over all warmups. A request beyond it
// is dropped; the next plan of its warmup repeats it.
inline constexpr size_t kLogReadsMax = 1024;

// Reads the logs of started containers apart from the threads that plan, at most
// engine_log::kLogBytesMax of each, and keeps the answers until the plan has written them into the
// status. State is in memory only: answers are recorded in status.starts, and a new leader reads
// only the logs of starts without one. Counts every answer, and logs the first of several failures.
// Thread-safe.
class LogReads {
 public:
  struct Dependencies {
    kube::Client& client;
    const Clock& clock;
    const op::Metrics& metrics;
    Log& log;
    kube::WorkQueue& queue;
    // Called with the warmup's "ns/name" when an answer is there.
    std::function<void(const std::string& warmup)> wake;
  };

  // All references must outlive this object.
  explicit LogReads(Dependencies deps) : deps_(std::move(deps)) {}

  // Queues the reads in `desired` that were not queued yet. Forgets those of this warmup that are
  // not in `desired` any more.
  void Update(const api::CacheWarmup& warmup, const std::vector<model::DesiredLogRead>& desired);
  // Forgets all reads of a deleted warmup.
  void Forget(const std::string& warmup_uid);
  std::vector<model::EngineReport> Reports(const std::string& warmup_uid) const;

  // Reads one log. Call for the keys of the queue.
  absl::StatusOr<kube::Outcome> Reconcile(const std::string& key, std::stop_token stop);

 private:
  struct Read {
    std::string ns;
    std::string warmup;
    std::string warmup_uid;
    model::DesiredLogRead desired;
    int failures = 0;
    std::optional<api::EngineStart> answer;
  };

  absl::StatusOr<api::EngineStart> ReadLog(const Read& read, std::stop_token stop) const;
  // Records the result of an attempt. Returns true if there is an answer, false if the log has to
  // be read again.
  bool Record(const std::string& key, const absl::StatusOr<api::EngineStart>& result);
  void LogFailure(const Read& read, const absl::Status& failure);

  Dependencies deps_;
  mutable std::mutex mutex_;
  std::map<std::string, Read> reads_;  // by "<uid of the warmup>/<uid of the pod>"
  bool is_failing_ = false;            // the last read failed, and this was logged
};

}  // namespace cachewarm::apply

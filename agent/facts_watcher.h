// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "agent/sync/gpu_conditions.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/fingerprint/node_facts.h"

namespace cachewarm::agent {

// Queries of the node's facts. `all` and `driver_state` are called on one thread, `without_gpu` on
// any.
struct NodeProbes {
  // Returns all facts. UNAVAILABLE if the GPU driver fails or does not answer before a deadline.
  std::function<absl::StatusOr<fingerprint::NodeFacts>(std::stop_token)> all;
  // Returns the facts without querying the GPU driver: the GPU type is empty unless the facts file
  // declares it.
  std::function<absl::StatusOr<fingerprint::NodeFacts>()> without_gpu;
  // Returns a text that changes when the driver may have changed (probe::DriverState).
  std::function<std::string()> driver_state;
};

struct FactsWatcherOptions {
  Duration interval{600'000};  // time between two queries that succeed
  Duration retry{10'000};      // time between a failed query and the next one
  Duration look{5'000};        // time between two calls of driver_state
  // Time that the daemon waits for the first query before it prepares the directories of pods
  // without a GPU type. A driver without persistence mode may take 10 s to start.
  Duration first{20'000};
};

// Keeps the facts of the node current. Queries them at start, when the driver may have changed,
// when Wake() is called, and periodically. While the driver does not answer, the last facts stay
// valid; until it has answered once, the GPU is unknown. Logs every change and every new error
// once.
class FactsWatcher {
 public:
  // Called on the thread of Run() with the result of each query that differs from the previous
  // result.
  using Report = std::function<void(GpuObservation)>;

  // `clock` and `log` must outlive this object.
  FactsWatcher(const Clock& clock, Log& log, NodeProbes probes, Report report,
               FactsWatcherOptions options = {});

  void Run(std::stop_token stop);
  // Starts the next query now. Thread-safe.
  void Wake();

 private:
  // Queries once. Returns false if the query failed.
  bool Probe(std::stop_token stop);
  absl::StatusOr<GpuObservation> Observe(std::stop_token stop);
  void LogOnce(const std::string& error);
  void WaitForCause(Duration wait, std::stop_token stop);

  const Clock& clock_;
  Log& log_;
  NodeProbes probes_;
  Report report_;
  const FactsWatcherOptions options_;
  std::string driver_state_;
  std::optional<GpuObservation> last_;
  std::string logged_error_;

  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool awake_ = false;
};

}  // namespace cachewarm::agent

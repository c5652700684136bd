// SPDX-License-Identifier: Apache-2.0
#include "agent/facts_watcher.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"

namespace cachewarm::agent {

FactsWatcher::FactsWatcher(const Clock& clock, Log& log, NodeProbes probes, Report report,
                           FactsWatcherOptions options)
    : clock_(clock),
      log_(log),
      probes_(std::move(probes)),
      report_(std::move(report)),
      options_(options) {}

void FactsWatcher::Wake() {
  {
    std::lock_guard lock(mutex_);
    awake_ = true;
  }
  wake_.notify_all();
}

void FactsWatcher::LogOnce(const std::string& error) {
  if (error != logged_error_ && !error.empty()) {
    log_.Error("cannot probe the node", {{"err", error}});
  }
  logged_error_ = error;
}

absl::StatusOr<GpuObservation> FactsWatcher::Observe(std::stop_token stop) {
  absl::StatusOr<fingerprint::NodeFacts> facts = probes_.all(stop);
  if (facts.ok()) {
    return GpuObservation{.facts = *std::move(facts)};
  }
  GpuObservation out;
  if (last_.has_value() && !last_->is_gpu_unknown) {
    out.facts = last_->facts;
  } else {
    CW_ASSIGN_OR_RETURN(out.facts, probes_.without_gpu());
    out.is_gpu_unknown = out.facts.gpu_type.empty();
  }
  out.probe_error = Message(facts.status());
  return out;
}

bool FactsWatcher::Probe(std::stop_token stop) {
  driver_state_ = probes_.driver_state();
  absl::StatusOr<GpuObservation> seen = Observe(stop);
  if (stop.stop_requested()) {
    return false;
  }
  LogOnce(seen.ok() ? seen->probe_error : Message(seen.status()));
  if (!seen.ok()) {
    return false;
  }
  if (!last_.has_value() || last_->facts != seen->facts) {
    log_.Info("node probed", {{"gpuType", seen->facts.gpu_type},
                              {"cpuClass", seen->facts.cpu_class},
                              {"devices", seen->facts.device_count},
                              {"driverVersion", seen->facts.driver_version}});
  }
  const bool changed = !last_.has_value() || last_->facts != seen->facts ||
                       last_->is_gpu_unknown != seen->is_gpu_unknown ||
                       last_->probe_error != seen->probe_error;
  last_ = *seen;
  const bool answered = seen->probe_error.empty();
  if (changed) {
    report_(*std::move(seen));
  }
  return answered;
}

void FactsWatcher::WaitForCause(Duration wait, std::stop_token stop) {
  const MonoTime end = clock_.Monotonic() + wait;
  std::unique_lock lock(mutex_);
  while (!awake_ && !stop.stop_requested() && clock_.Monotonic() < end) {
    clock_.WaitUntil(lock, wake_, std::min(end, clock_.Monotonic() + options_.look), stop);
    lock.unlock();
    const bool changed = probes_.driver_state() != driver_state_;
    lock.lock();
    if (changed) {
      break;
    }
  }
  awake_ = false;
}

void FactsWatcher::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const bool answered = Probe(stop);
    WaitForCause(answered ? options_.interval : options_.retry, stop);
  }
}

}  // namespace cachewarm::agent

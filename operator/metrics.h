// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/metrics/metrics.h"

namespace cachewarm::op {

// All metrics of the operator. The comments name the labels. Handles live as long as the registry
// and are thread-safe. Counters of starts and savings increase only after the status with the same
// counts was written (operator/apply), so that a new leader does not count a start twice.
struct Metrics {
  metrics::Counter& pod_starts;           // namespace, warmup, gpu_type, result
  metrics::Counter& saved_seconds;        // namespace, warmup, gpu_type
  metrics::Counter& lost_seconds;         // namespace, warmup, gpu_type
  metrics::Histogram& hold_seconds;       // namespace, warmup
  metrics::Counter& builds;               // namespace, warmup, gpu_type, reason
  metrics::Histogram& build_seconds;      // namespace, warmup, gpu_type
  metrics::Counter& gate_releases;        // namespace, warmup, reason: see CountRelease()
  metrics::Gauge& nodes_waiting;          // namespace, warmup
  metrics::Counter& startup_taints;       // reason
  metrics::Counter& admission_dry_runs;   // result
  metrics::Counter& reconciles;           // controller, result
  metrics::Histogram& reconcile_seconds;  // controller
  metrics::Counter& api_requests;         // verb, resource, code
  metrics::Histogram& api_seconds;        // verb
  metrics::Gauge& admission;              // mode: 1 if that mode (policy, webhook) is installed
  metrics::Counter& webhook_requests;     // result
  metrics::Histogram& webhook_seconds;    // no labels
  metrics::Gauge& leader;                 // no labels: 1 if this replica is the leader

  // Counts one removed gate. `warmup` is "" if the operator does not know the warmup: anybody may
  // write any name on a pod, and each name would be a new series.
  void CountRelease(const std::string& ns, const std::string& warmup, std::string_view reason,
                    double held_seconds) const;
  // Removes the series of the deleted warmup `ns`/`warmup`.
  void Forget(const std::string& ns, const std::string& warmup) const;
};

// Registers all metrics, and cachewarm_build_info{version} with the value 1.
Metrics MakeMetrics(metrics::Registry& registry, const std::string& version);

}  // namespace cachewarm::op

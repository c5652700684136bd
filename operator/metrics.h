// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/metrics/metrics.h"

namespace cachewarm::op {

// All metrics of the operator. The references are valid as long as the registry, and the metrics
// are thread-safe. The first six are totals: the leader raises them to the totals in the status
// of each CacheWarmup (operator/apply/served_totals.h); a standby has no series of them.
struct Metrics {
  metrics::Counter& pod_starts;           // labels: namespace, warmup, gpu_type, result
  metrics::Counter& saved_seconds;        // labels: namespace, warmup, gpu_type
  metrics::Counter& lost_seconds;         // labels: namespace, warmup, gpu_type
  metrics::Counter& saved_gpu_seconds;    // labels: namespace, warmup, gpu_type
  metrics::Counter& lost_gpu_seconds;     // labels: namespace, warmup, gpu_type
  metrics::Counter& builder_gpu_seconds;  // labels: namespace, warmup, gpu_type
  metrics::Counter& late_compiles;        // labels: namespace, warmup, gpu_type
  metrics::Histogram& start_seconds;      // labels: namespace, warmup, result
  metrics::Histogram& compile_seconds;    // labels: namespace, warmup
  metrics::Histogram& hold_seconds;       // labels: namespace, warmup
  metrics::Histogram& phase_seconds;      // labels: namespace, warmup, phase, result
  metrics::Gauge& kv_cache_tokens;        // labels: namespace, warmup, gpu_type, result
  metrics::Counter& engine_log_reads;     // labels: result
  metrics::Counter& builds;               // labels: namespace, warmup, gpu_type, reason
  metrics::Histogram& build_seconds;      // labels: namespace, warmup, gpu_type
  metrics::Counter& harvests;             // labels: namespace, warmup, result
  metrics::Counter& gate_releases;        // labels: namespace, warmup, reason; see CountRelease()
  metrics::Gauge& nodes_waiting;          // labels: namespace, warmup
  metrics::Gauge& suspended_bundles;      // labels: namespace, warmup
  metrics::Gauge& pods_held;              // labels: namespace, warmup
  metrics::Gauge& pods_overdue;           // labels: namespace, warmup; held past their deadline
  metrics::Counter& startup_taints;       // labels: reason
  metrics::Counter& admission_dry_runs;   // labels: result
  metrics::Counter& reconciles;           // labels: controller, result
  metrics::Histogram& reconcile_seconds;  // labels: controller
  metrics::Counter& api_requests;         // labels: verb, resource, code
  metrics::Histogram& api_seconds;        // labels: verb
  metrics::Gauge& admission;              // label: mode (policy, webhook); 1 if installed
  metrics::Counter& webhook_requests;     // labels: result
  metrics::Histogram& webhook_seconds;    // no labels
  metrics::Gauge& certificate_expiry;     // no labels; Unix time, 0 without a served certificate
  metrics::Gauge& leader;                 // no labels; 1 if this replica is the leader

  // Counts one removed gate. `warmup` must be "" if the operator does not know the warmup: anyone
  // may write any warmup name on a pod, and each name would create a new series.
  void CountRelease(const std::string& ns, const std::string& warmup, std::string_view reason,
                    double held_seconds) const;
  // Removes the series of the deleted warmup `ns`/`warmup`.
  void Forget(const std::string& ns, const std::string& warmup) const;
  // Removes the series of all totals and of all gauges with the label `warmup`. Called when this
  // replica stops leading: the next leader serves the same values, and a sum over the replicas
  // would count them twice.
  void ForgetWarmups() const;
};

// Registers all metrics, and cachewarm_build_info{version} with the value 1.
Metrics MakeMetrics(metrics::Registry& registry, const std::string& version);

}  // namespace cachewarm::op

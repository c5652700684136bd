// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lib/metrics/metrics.h"

namespace cachewarm::op {

// Every metric of the operator, made once at start. Handles live as long as the registry and are
// thread-safe. Counters of starts and savings move only after the status that holds the same counts
// was written (operator/apply), so that nothing counts twice across leaders.
struct Metrics {
  metrics::Counter& pod_starts;           // namespace, warmup, gpu_type, result
  metrics::Counter& saved_seconds;        // namespace, warmup, gpu_type
  metrics::Counter& lost_seconds;         // namespace, warmup, gpu_type
  metrics::Histogram& hold_seconds;       // namespace, warmup
  metrics::Counter& builds;               // namespace, warmup, gpu_type, result
  metrics::Histogram& build_seconds;      // namespace, warmup, gpu_type
  metrics::Counter& gate_releases;        // namespace, warmup, reason: see CountRelease()
  metrics::Gauge& nodes_waiting;          // namespace, warmup
  metrics::Counter& startup_taints;       // reason
  metrics::Counter& rehearsals;           // result
  metrics::Counter& reconciles;           // controller, result
  metrics::Histogram& reconcile_seconds;  // controller
  metrics::Counter& api_requests;         // verb, resource, code
  metrics::Histogram& api_seconds;        // verb
  metrics::Gauge& admission;              // by: 1 where the policy, the webhook is installed
  metrics::Counter& webhook_requests;     // result
  metrics::Histogram& webhook_seconds;    // no labels
  metrics::Gauge& leader;                 // no labels: 1 while this process leads

  // A gate was removed. `warmup` is "" for one that we do not know: it has no series of its own,
  // and anybody may write a name on a pod.
  void CountRelease(const std::string& ns, const std::string& warmup, std::string_view reason,
                    double held_seconds) const;
  // Forgets the series of a warmup that is gone.
  void Forget(const std::string& ns, const std::string& warmup) const;
};

// Registers all of them, and cachewarm_build_info{version} as 1.
Metrics MakeMetrics(metrics::Registry& registry, const std::string& version);

}  // namespace cachewarm::op

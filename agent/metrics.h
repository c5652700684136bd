// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/bundle/store/metered/metered_store.h"
#include "lib/metrics/metrics.h"

namespace cachewarm::agent {

// All metrics of the agent. The registry must outlive the metrics. A comment gives the labels of a
// metric and, where the name is not sufficient, the measured quantity. Label values are from closed
// lists: results, reasons of lib/api/reasons.h, verbs and HTTP codes, operations of
// bundle::StoreCall and names of absl::StatusCode ("OK", "NOT_FOUND").
struct Metrics {
  explicit Metrics(metrics::Registry& registry, const std::string& version);

  metrics::Counter& fetches;            // label result: ok, failed
  metrics::Counter& fetched_bytes;      // compressed bytes that were downloaded
  metrics::Counter& reused_bytes;       // bytes of files taken from another tree of this node
  metrics::Histogram& fetch_seconds;    // time from the start of the fetch to the complete tree
  metrics::Counter& captures;           // label result: pushed, failed, changed
  metrics::Counter& published_bytes;    // compressed bytes of the bundles
  metrics::Histogram& publish_seconds;  // time from queueing the publication to the pushed bundle
  metrics::Counter& activations;        // links switched to another generation
  metrics::Gauge& warm_generations;     // active generations with at least one bundle
  metrics::Gauge& cold_generations;     // active generations without a bundle
  metrics::Counter& failures;           // label reason
  metrics::Gauge& quarantined_bundles;  // label reason: VerifyFailed, BundleRejected
  metrics::Gauge& refused_bundles;      // label reason: OverByteLimit, DiskFull
  metrics::Counter& scrubs;             // label result: whole, damaged, failed
  metrics::Counter& scrubbed_bytes;     // bytes read to compare active trees with their bundles
  metrics::Counter& starts;             // first starts of pods on this node; label result
  metrics::Histogram& sync_seconds;     // duration of one iteration of the sync loop
  metrics::Counter& syncs;              // label result: ok, failed
  metrics::Counter& api_requests;       // labels verb, resource, code
  metrics::Counter& store_requests;     // labels operation, code
  metrics::Counter& store_bytes;        // bytes of blobs and manifests; label operation
  metrics::Histogram& store_seconds;    // time spent inside store calls; label operation
  metrics::Gauge& root_used_bytes;
  metrics::Gauge& root_free_bytes;
  metrics::Gauge& root_limit_bytes;  // 0: no limit
  metrics::Gauge& conditions;        // 1 if the condition of the NodeCache is True; label type
  metrics::Gauge& evictable_bytes;   // trees offered to the operator
  metrics::Counter& evictions;       // removed trees; label reason (EvictionCause)
  metrics::Counter& evicted_bytes;   // bytes of the removed trees
  metrics::Gauge& watched_directories;
  metrics::Counter& event_overflows;        // overflows of the kernel's queue of file events
  metrics::Counter& redis_requests;         // requested keys; labels cache, result (RemoteCommands)
  metrics::Counter& redis_compile_seconds;  // compile time stored in served values; label cache
  metrics::Gauge& redis_connections;
  metrics::Counter& redis_rejected_connections;
  metrics::Gauge& build_info;  // always 1; label version
};

// Adds `call` to the store_* metrics. Used as the callback of bundle::MeteredStore.
void CountStoreCall(Metrics& metrics, const bundle::StoreCall& call);

}  // namespace cachewarm::agent

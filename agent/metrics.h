// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/bundle/store/metered/metered_store.h"
#include "lib/metrics/metrics.h"

namespace cachewarm::agent {

// All metrics of the agent. The registry must outlive the metrics. The comments name the labels, or
// say what is counted. Label values are from closed lists: results, reasons of lib/api/reasons.h,
// verbs and HTTP codes, operations of bundle::StoreCall and names of absl::StatusCode ("OK",
// "NOT_FOUND").
struct Metrics {
  explicit Metrics(metrics::Registry& registry, const std::string& version);

  metrics::Counter& fetches;            // result: ok, failed
  metrics::Counter& fetched_bytes;      // over the network
  metrics::Counter& reused_bytes;       // of files that another tree of the node had
  metrics::Histogram& fetch_seconds;    // from the first manifest to the complete tree
  metrics::Counter& captures;           // result: pushed, failed, changed
  metrics::Counter& published_bytes;    // size of the packed bundles
  metrics::Histogram& publish_seconds;  // from the settled tree to the pushed bundle
  metrics::Counter& activations;        // links flipped to another generation
  metrics::Gauge& warm_generations;     // active, with at least one bundle
  metrics::Gauge& cold_generations;     // active, without a bundle
  metrics::Counter& failures;           // reason
  metrics::Gauge& quarantined_bundles;  // reason: VerifyFailed, BundleRejected
  metrics::Counter& scrubs;             // result: whole, damaged, failed
  metrics::Counter& scrubbed_bytes;     // read from active trees for the comparison
  metrics::Counter& starts;             // result of the pods' first starts seen on this node
  metrics::Histogram& sync_seconds;     // one iteration of the sync loop
  metrics::Counter& syncs;              // result: ok, failed
  metrics::Counter& api_requests;       // verb, resource, code
  metrics::Counter& store_requests;     // operation, code
  metrics::Counter& store_bytes;        // operation; bytes of blobs and manifests
  metrics::Histogram& store_seconds;    // operation; time in the store only
  metrics::Gauge& root_used_bytes;
  metrics::Gauge& root_free_bytes;
  metrics::Gauge& root_limit_bytes;  // 0: no limit
  metrics::Gauge& watched_directories;
  metrics::Gauge& build_info;  // version; always 1
};

// Adds `call` to the store_* metrics; the callback of bundle::MeteredStore.
void CountStoreCall(Metrics& metrics, const bundle::StoreCall& call);

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics.h"

#include <chrono>

namespace cachewarm::agent {

Metrics::Metrics(metrics::Registry& registry, const std::string& version)
    : fetches(registry.NewCounter({.name = "cachewarm_fetches_total",
                                   .help = "Generations fetched from the store, by result.",
                                   .labels = {"result"}})),
      fetched_bytes(registry.NewCounter(
          {.name = "cachewarm_fetched_bytes_total", .help = "Packed bytes that fetches moved."})),
      reused_bytes(registry.NewCounter(
          {.name = "cachewarm_reused_bytes_total",
           .help = "Bytes of files that a new tree got from another one of this node."})),
      fetch_seconds(registry.NewHistogram(
          {.name = "cachewarm_fetch_seconds",
           .help = "From reading the manifest to a complete tree on the disk."},
          metrics::SecondsBuckets())),
      captures(registry.NewCounter({.name = "cachewarm_captures_total",
                                    .help = "Builder directories captured, by result.",
                                    .labels = {"result"}})),
      published_bytes(registry.NewCounter({.name = "cachewarm_published_bytes_total",
                                           .help = "Packed bytes of published bundles."})),
      publish_seconds(
          registry.NewHistogram({.name = "cachewarm_publish_seconds",
                                 .help = "From a settled directory to a readable bundle."},
                                metrics::SecondsBuckets())),
      activations(registry.NewCounter(
          {.name = "cachewarm_activations_total", .help = "Links flipped to another generation."})),
      active_generations(registry.NewGauge(
          {.name = "cachewarm_active_generations",
           .help = "Directories that pods may mount, by whether bundles are in them.",
           .labels = {"warm"}})),
      failures(registry.NewCounter({.name = "cachewarm_agent_failures_total",
                                    .help = "Steps that failed, by the reason in status.",
                                    .labels = {"reason"}})),
      quarantined_bundles(registry.NewGauge(
          {.name = "cachewarm_quarantined_bundles",
           .help = "Wanted bundles that this node does not fetch, by the reason in status.",
           .labels = {"reason"}})),
      scrubs(registry.NewCounter({.name = "cachewarm_scrubs_total",
                                  .help = "Passes over active trees, by result.",
                                  .labels = {"result"}})),
      scrubbed_bytes(
          registry.NewCounter({.name = "cachewarm_scrubbed_bytes_total",
                               .help = "Bytes of active trees that were read to be compared."})),
      starts(registry.NewCounter({.name = "cachewarm_observed_starts_total",
                                  .help = "First starts seen on this node, by result.",
                                  .labels = {"result"}})),
      turn_seconds(registry.NewHistogram(
          {.name = "cachewarm_agent_turn_seconds", .help = "One turn of the sync loop."},
          metrics::SecondsBuckets())),
      turns(registry.NewCounter({.name = "cachewarm_agent_turns_total",
                                 .help = "Turns of the sync loop, by result.",
                                 .labels = {"result"}})),
      api_requests(
          registry.NewCounter({.name = "cachewarm_api_requests_total",
                               .help = "Requests to the Kubernetes API; code 0: no answer.",
                               .labels = {"verb", "resource", "code"}})),
      store_requests(registry.NewCounter(
          {.name = "cachewarm_store_requests_total",
           .help = "Calls of the store, by operation and status code; an upload is one.",
           .labels = {"operation", "code"}})),
      store_bytes(registry.NewCounter(
          {.name = "cachewarm_store_bytes_total",
           .help = "Bytes of blobs and manifests read and written, also of calls that failed.",
           .labels = {"operation"}})),
      store_seconds(registry.NewHistogram(
          {.name = "cachewarm_store_seconds",
           .help = "Time inside the store, without what this node did with the bytes.",
           .labels = {"operation"}},
          metrics::SecondsBuckets())),
      root_bytes(registry.NewGauge({.name = "cachewarm_root_bytes",
                                    .help = "The root directory: used, free and limit (0: none).",
                                    .labels = {"kind"}})),
      watched_directories(registry.NewGauge({.name = "cachewarm_watched_directories",
                                             .help = "Directories watched for file events."})),
      build(registry.NewGauge({.name = "cachewarm_build",
                               .help = "Always 1; the version is the label.",
                               .labels = {"version"}})) {
  build.Set({version}, 1);
}

void CountStoreCall(Metrics& metrics, const bundle::StoreCall& call) {
  const std::string operation(call.operation);
  metrics.store_requests.Add({operation, absl::StatusCodeToString(call.code)});
  metrics.store_bytes.Add({operation}, static_cast<double>(call.bytes));
  metrics.store_seconds.Observe({operation}, std::chrono::duration<double>(call.time).count());
}

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics.h"

#include <chrono>

namespace cachewarm::agent {

Metrics::Metrics(metrics::Registry& registry, const std::string& version)
    : fetches(registry.NewCounter({.name = "cachewarm_fetches_total",
                                   .help = "Fetches of a generation, by result (ok, failed).",
                                   .labels = {"result"}})),
      fetched_bytes(registry.NewCounter({.name = "cachewarm_fetched_bytes_total",
                                         .help = "Compressed bytes downloaded by fetches."})),
      reused_bytes(
          registry.NewCounter({.name = "cachewarm_reused_bytes_total",
                               .help = "Bytes of files reused from another tree of the node."})),
      fetch_seconds(
          registry.NewHistogram({.name = "cachewarm_fetch_seconds",
                                 .help = "Time from the start of a fetch to the complete tree."},
                                metrics::SecondsBuckets())),
      captures(registry.NewCounter(
          {.name = "cachewarm_captures_total",
           .help = "Captures of builder directories, by result (pushed, failed, changed: the files "
                   "changed during the capture).",
           .labels = {"result"}})),
      published_bytes(registry.NewCounter({.name = "cachewarm_published_bytes_total",
                                           .help = "Compressed bytes of published bundles."})),
      publish_seconds(
          registry.NewHistogram({.name = "cachewarm_publish_seconds",
                                 .help = "Time from queueing a publication to the pushed bundle."},
                                metrics::SecondsBuckets())),
      activations(
          registry.NewCounter({.name = "cachewarm_activations_total",
                               .help = "Activations: links switched to another generation."})),
      warm_generations(
          registry.NewGauge({.name = "cachewarm_warm_generations",
                             .help = "Active generations that contain at least one bundle."})),
      cold_generations(registry.NewGauge(
          {.name = "cachewarm_cold_generations", .help = "Active generations without a bundle."})),
      failures(registry.NewCounter(
          {.name = "cachewarm_agent_failures_total",
           .help = "Failed steps, by the reason written to the NodeCache status.",
           .labels = {"reason"}})),
      quarantined_bundles(
          registry.NewGauge({.name = "cachewarm_quarantined_bundles",
                             .help = "Requested bundles in quarantine on this node, by reason.",
                             .labels = {"reason"}})),
      refused_bundles(registry.NewGauge(
          {.name = "cachewarm_refused_bundles",
           .help = "Requested bundles that are not fetched for lack of space on this node, by "
                   "reason (OverByteLimit, DiskFull).",
           .labels = {"reason"}})),
      scrubs(
          registry.NewCounter({.name = "cachewarm_scrubs_total",
                               .help = "Comparisons of active trees with their bundles, by result "
                                       "(whole, damaged, failed).",
                               .labels = {"result"}})),
      scrubbed_bytes(registry.NewCounter({.name = "cachewarm_scrubbed_bytes_total",
                                          .help = "Bytes read while scrubbing active trees."})),
      starts(registry.NewCounter({.name = "cachewarm_observed_starts_total",
                                  .help = "First starts of pods observed on this node, by result.",
                                  .labels = {"result"}})),
      sync_seconds(registry.NewHistogram(
          {.name = "cachewarm_agent_sync_seconds", .help = "Duration of one sync loop iteration."},
          metrics::SecondsBuckets())),
      syncs(registry.NewCounter({.name = "cachewarm_agent_sync_total",
                                 .help = "Sync loop iterations, by result (ok, failed).",
                                 .labels = {"result"}})),
      api_requests(registry.NewCounter(
          {.name = "cachewarm_api_requests_total",
           .help = "Requests to the Kubernetes API server; code 0: no response.",
           .labels = {"verb", "resource", "code"}})),
      store_requests(registry.NewCounter(
          {.name = "cachewarm_store_requests_total",
           .help =
               "Calls to the bundle store, by operation and status code; one upload is one call.",
           .labels = {"operation", "code"}})),
      store_bytes(registry.NewCounter(
          {.name = "cachewarm_store_bytes_total",
           .help = "Bytes of blobs and manifests read or written, including failed calls.",
           .labels = {"operation"}})),
      store_seconds(registry.NewHistogram(
          {.name = "cachewarm_store_seconds",
           .help = "Time spent in store calls, without local processing of the bytes.",
           .labels = {"operation"}},
          metrics::SecondsBuckets())),
      root_used_bytes(
          registry.NewGauge({.name = "cachewarm_root_used_bytes",
                             .help = "Bytes used below the agent's root directory (--root)."})),
      root_free_bytes(registry.NewGauge(
          {.name = "cachewarm_root_free_bytes",
           .help = "Free bytes on the file system of the agent's root directory (--root)."})),
      root_limit_bytes(registry.NewGauge(
          {.name = "cachewarm_root_limit_bytes",
           .help = "Byte limit of the agent's root directory (--byte-limit); 0: no limit."})),
      conditions(registry.NewGauge(
          {.name = "cachewarm_node_condition",
           .help = "1 while this condition of the NodeCache is True, else 0. A condition that was "
                   "never True has no series.",
           .labels = {"type"}})),
      evictable_bytes(registry.NewGauge(
          {.name = "cachewarm_agent_evictable_bytes",
           .help = "Bytes of trees that are removed once no running pod can have them mounted."})),
      evictions(registry.NewCounter(
          {.name = "cachewarm_agent_evictions_total",
           .help = "Removed trees, by reason (unusable, cold, superseded, warmup_gone, "
                   "disk_pressure).",
           .labels = {"reason"}})),
      evicted_bytes(registry.NewCounter(
          {.name = "cachewarm_agent_evicted_bytes_total", .help = "Bytes of removed trees."})),
      watched_directories(registry.NewGauge({.name = "cachewarm_watched_directories",
                                             .help = "Directories watched for file events."})),
      event_overflows(registry.NewCounter(
          {.name = "cachewarm_file_event_overflows_total",
           .help =
               "Overflows of the kernel's queue of file events. Starts in progress at that time "
               "are reported as unknown."})),
      redis_requests(registry.NewCounter(
          {.name = "cachewarm_redis_requests_total",
           .help =
               "Keys requested from the Redis endpoint, by cache (fx_graph, autograd, autotune, "
               "triton, other) and result (hit, miss, stored, dropped: a limit was exceeded).",
           .labels = {"cache", "result"}})),
      redis_compile_seconds(registry.NewCounter(
          {.name = "cachewarm_redis_compile_seconds_total",
           .help = "Compile time that torch stored in the values served by the Redis endpoint. "
                   "The time of autograd includes that of fx_graph.",
           .labels = {"cache"}})),
      redis_connections(registry.NewGauge({.name = "cachewarm_redis_connections",
                                           .help = "Clients connected to the Redis endpoint."})),
      redis_rejected_connections(registry.NewCounter(
          {.name = "cachewarm_redis_rejected_connections_total",
           .help = "Clients that the Redis endpoint rejected because of its connection limits."})),
      build_info(registry.NewGauge({.name = "cachewarm_build_info",
                                    .help = "Always 1; the version is the label.",
                                    .labels = {"version"}})) {
  build_info.Set({version}, 1);
}

void CountStoreCall(Metrics& metrics, const bundle::StoreCall& call) {
  const std::string operation(call.operation);
  metrics.store_requests.Add({operation, absl::StatusCodeToString(call.code)});
  metrics.store_bytes.Add({operation}, static_cast<double>(call.bytes));
  metrics.store_seconds.Observe({operation}, std::chrono::duration<double>(call.time).count());
}

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#include "operator/metrics.h"

namespace cachewarm::op {
namespace {

// Returns the bucket limits of webhook_seconds. The webhook should answer within milliseconds; the
// API server stops waiting after 2 s.
std::vector<double> WebhookBuckets() {
  return {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2};
}

// Limit of the series of a total: 20,000 starts series are those of 1,250 warmups with two GPU
// types.
constexpr size_t kTotalsMax = 20'000;

metrics::Counter& PodStarts(metrics::Registry& registry) {
  return registry.NewCounter(
      {.name = "cachewarm_pod_starts_total",
       .help = "First starts of pods since the warmup was created, by result (hit, partial, miss, "
               "...).",
       .labels = {"namespace", "warmup", "gpu_type", "result"},
       .series_max = kTotalsMax});
}

// Registers a total by GPU type.
metrics::Counter& Total(metrics::Registry& registry, metrics::MetricSpec spec) {
  spec.labels = {"namespace", "warmup", "gpu_type"};
  spec.series_max = kTotalsMax;
  return registry.NewCounter(spec);
}

metrics::Gauge& OfWarmup(metrics::Registry& registry, metrics::MetricSpec spec) {
  spec.labels = {"namespace", "warmup"};
  return registry.NewGauge(spec);
}

metrics::Counter& SavedSeconds(metrics::Registry& registry) {
  return Total(registry, {.name = "cachewarm_saved_seconds_total",
                          .help = "Seconds saved by pods that started faster than the median cold "
                                  "start, minus time held, since the warmup was created."});
}

metrics::Counter& LostSeconds(metrics::Registry& registry) {
  return Total(registry,
               {.name = "cachewarm_lost_seconds_total",
                .help = "Seconds lost by pods that started slower than the median cold start, "
                        "including time held, since the warmup was created."});
}

metrics::Counter& BuilderGpuSeconds(metrics::Registry& registry) {
  return Total(registry, {.name = "cachewarm_builder_gpu_seconds_total",
                          .help = "GPU seconds of builder Jobs, from the start of the container "
                                  "to the end of the build."});
}

metrics::Counter& LateCompiles(metrics::Registry& registry) {
  return Total(registry, {.name = "cachewarm_late_compiles_total",
                          .help = "Entries that running pods compiled after they were Ready, since "
                                  "the warmup was created."});
}

metrics::Histogram& StartSeconds(metrics::Registry& registry) {
  return registry.NewHistogram(
      {.name = "cachewarm_pod_start_seconds",
       .help = "Time from the start of the container to Ready, of first starts, by result.",
       .labels = {"namespace", "warmup", "result"}},
      metrics::SecondsBuckets());
}

metrics::Histogram& CompileSeconds(metrics::Registry& registry) {
  return registry.NewHistogram(
      {.name = "cachewarm_compile_seconds",
       .help = "Time from the start of the container to the last compiled file, of first "
               "starts that compiled.",
       .labels = {"namespace", "warmup"}},
      metrics::SecondsBuckets());
}

metrics::Histogram& HoldSeconds(metrics::Registry& registry) {
  return registry.NewHistogram({.name = "cachewarm_hold_seconds",
                                .help = "Time that pods were held by the scheduling gate.",
                                .labels = {"namespace", "warmup"}},
                               metrics::SecondsBuckets());
}

metrics::Histogram& PhaseSeconds(metrics::Registry& registry) {
  return registry.NewHistogram(
      {.name = "cachewarm_engine_phase_seconds",
       .help = "Duration of start-up phases (weights, compile, graph_capture, init) as vLLM or "
               "SGLang logs it, by result of the start; init contains compile and graph_capture.",
       .labels = {"namespace", "warmup", "phase", "result"}},
      metrics::SecondsBuckets());
}

metrics::Gauge& KvCacheTokens(metrics::Registry& registry) {
  return registry.NewGauge(
      {.name = "cachewarm_engine_kv_cache_tokens",
       .help = "Median number of tokens that fit into the KV cache, as vLLM or SGLang logs it, of "
               "the recent starts with this result.",
       .labels = {"namespace", "warmup", "gpu_type", "result"}});
}

metrics::Histogram& BuildSeconds(metrics::Registry& registry) {
  return registry.NewHistogram(
      {.name = "cachewarm_build_seconds",
       .help = "Time from the election of a builder to the end of its build.",
       .labels = {"namespace", "warmup", "gpu_type"}},
      metrics::SecondsBuckets());
}

metrics::Counter& EngineLogReads(metrics::Registry& registry) {
  return registry.NewCounter({.name = "cachewarm_engine_log_reads_total",
                              .help = "Logs of engines that were read, by result (found, "
                                      "nothing_found, unreadable).",
                              .labels = {"result"}});
}

metrics::Counter& Harvests(metrics::Registry& registry) {
  return registry.NewCounter({.name = "cachewarm_harvests_total",
                              .help = "Harvests that ended, by result (harvested, nothing_new, "
                                      "refused, failed).",
                              .labels = {"namespace", "warmup", "result"}});
}

metrics::Gauge& PodsOverdue(metrics::Registry& registry) {
  return OfWarmup(registry,
                  {.name = "cachewarm_pods_held_past_deadline",
                   .help = "Pods that still have the scheduling gate of cachewarm 10 seconds "
                           "after their deadline."});
}

metrics::Gauge& CertificateExpiry(metrics::Registry& registry) {
  return registry.NewGauge(
      {.name = "cachewarm_webhook_certificate_expiry_timestamp_seconds",
       .help = "Unix time at which the certificate that the webhook serves expires; 0: none is "
               "served.",
       .labels = {}});
}

// Removes the matching series of the totals and gauges that only the leader serves.
void RemoveServed(const Metrics& metrics, const std::map<std::string, std::string>& match) {
  for (metrics::Counter* counter :
       {&metrics.pod_starts, &metrics.saved_seconds, &metrics.lost_seconds,
        &metrics.saved_gpu_seconds, &metrics.lost_gpu_seconds, &metrics.builder_gpu_seconds,
        &metrics.late_compiles}) {
    counter->Remove(match);
  }
  for (metrics::Gauge* gauge :
       {&metrics.nodes_waiting, &metrics.suspended_bundles, &metrics.pods_held,
        &metrics.pods_overdue, &metrics.kv_cache_tokens}) {
    gauge->Remove(match);
  }
}

metrics::Counter& ApiRequests(metrics::Registry& registry) {
  return registry.NewCounter({.name = "cachewarm_api_requests_total",
                              .help = "Requests to the Kubernetes API server; code 0: no response.",
                              .labels = {"verb", "resource", "code"}});
}

metrics::Histogram& ApiSeconds(metrics::Registry& registry) {
  return registry.NewHistogram(
      {.name = "cachewarm_api_request_seconds",
       .help = "Time from an API request to its response; for a watch, to the response headers.",
       .labels = {"verb"}},
      metrics::SecondsBuckets());
}

metrics::Gauge& Admission(metrics::Registry& registry) {
  return registry.NewGauge({.name = "cachewarm_admission_mode_info",
                            .help = "1 if this injection mode (policy, webhook) is installed.",
                            .labels = {"mode"}});
}

metrics::Counter& WebhookRequests(metrics::Registry& registry) {
  return registry.NewCounter({.name = "cachewarm_webhook_requests_total",
                              .help = "Admission requests handled by the webhook, by result.",
                              .labels = {"result"}});
}

metrics::Histogram& WebhookSeconds(metrics::Registry& registry) {
  return registry.NewHistogram({.name = "cachewarm_webhook_seconds",
                                .help = "Duration of one webhook request.",
                                .labels = {}},
                               WebhookBuckets());
}

}  // namespace

Metrics MakeMetrics(metrics::Registry& registry, const std::string& version) {
  registry
      .NewGauge({.name = "cachewarm_build_info",
                 .help = "Always 1; the version is the label.",
                 .labels = {"version"}})
      .Set({version}, 1);
  return Metrics{
      .pod_starts = PodStarts(registry),
      .saved_seconds = SavedSeconds(registry),
      .lost_seconds = LostSeconds(registry),
      .saved_gpu_seconds =
          Total(registry, {.name = "cachewarm_saved_gpu_seconds_total",
                           .help = "Saved seconds, each multiplied by the devices of its pod."}),
      .lost_gpu_seconds =
          Total(registry, {.name = "cachewarm_lost_gpu_seconds_total",
                           .help = "Lost seconds, each multiplied by the devices of its pod."}),
      .builder_gpu_seconds = BuilderGpuSeconds(registry),
      .late_compiles = LateCompiles(registry),
      .start_seconds = StartSeconds(registry),
      .compile_seconds = CompileSeconds(registry),
      .hold_seconds = HoldSeconds(registry),
      .phase_seconds = PhaseSeconds(registry),
      .kv_cache_tokens = KvCacheTokens(registry),
      .engine_log_reads = EngineLogReads(registry),
      .builds = registry.NewCounter({.name = "cachewarm_builds_total",
                                     .help = "Captured and failed builds, by reason.",
                                     .labels = {"namespace", "warmup", "gpu_type", "reason"}}),
      .build_seconds = BuildSeconds(registry),
      .harvests = Harvests(registry),
      .gate_releases = registry.NewCounter({.name = "cachewarm_gate_releases_total",
                                            .help = "Held pods that were released, by reason.",
                                            .labels = {"namespace", "warmup", "reason"}}),
      .nodes_waiting =
          OfWarmup(registry, {.name = "cachewarm_nodes_waiting",
                              .help = "Nodes that wait for a fetch slot to fetch a bundle of the "
                                      "warmup."}),
      .suspended_bundles =
          OfWarmup(registry, {.name = "cachewarm_suspended_bundles",
                              .help = "Suspended bundles that no other bundle of their key has "
                                      "replaced yet."}),
      .pods_held =
          OfWarmup(registry, {.name = "cachewarm_pods_held",
                              .help = "Pods that have the scheduling gate of cachewarm now."}),
      .pods_overdue = PodsOverdue(registry),
      .startup_taints =
          registry.NewCounter({.name = "cachewarm_startup_taints_removed_total",
                               .help = "Startup taints removed from nodes, by reason.",
                               .labels = {"reason"}}),
      .admission_dry_runs = registry.NewCounter({.name = "cachewarm_admission_dry_runs_total",
                                                 .help = "Dry runs that test injection, by result.",
                                                 .labels = {"result"}}),
      .reconciles = registry.NewCounter({.name = "cachewarm_reconciles_total",
                                         .help = "Reconciliations, by controller and result.",
                                         .labels = {"controller", "result"}}),
      .reconcile_seconds = registry.NewHistogram({.name = "cachewarm_reconcile_seconds",
                                                  .help = "Duration of one reconciliation.",
                                                  .labels = {"controller"}},
                                                 metrics::SecondsBuckets()),
      .api_requests = ApiRequests(registry),
      .api_seconds = ApiSeconds(registry),
      .admission = Admission(registry),
      .webhook_requests = WebhookRequests(registry),
      .webhook_seconds = WebhookSeconds(registry),
      .certificate_expiry = CertificateExpiry(registry),
      .leader = registry.NewGauge(
          {.name = "cachewarm_leader", .help = "1 if this replica is the leader.", .labels = {}}),
  };
}

void Metrics::CountRelease(const std::string& ns, const std::string& warmup,
                           std::string_view reason, double held_seconds) const {
  gate_releases.Add({ns, warmup, std::string(reason)});
  hold_seconds.Observe({ns, warmup}, held_seconds);
}

void Metrics::Forget(const std::string& ns, const std::string& warmup) const {
  const std::map<std::string, std::string> match = {{"namespace", ns}, {"warmup", warmup}};
  RemoveServed(*this, match);
  for (metrics::Counter* counter : {&builds, &harvests, &gate_releases}) {
    counter->Remove(match);
  }
  for (metrics::Histogram* histogram :
       {&start_seconds, &compile_seconds, &hold_seconds, &build_seconds, &phase_seconds}) {
    histogram->Remove(match);
  }
}

void Metrics::ForgetWarmups() const {
  RemoveServed(*this, {});
}

}  // namespace cachewarm::op

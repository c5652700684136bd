// SPDX-License-Identifier: Apache-2.0
#include "operator/metrics.h"

namespace cachewarm::op {
namespace {

// An answer should take milliseconds, and after 2 s nobody waits for it any more.
std::vector<double> WebhookBuckets() {
  return {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2};
}

metrics::Counter& ApiRequests(metrics::Registry& registry) {
  return registry.NewCounter({.name = "cachewarm_api_requests_total",
                              .help = "Requests to the API server; code 0 is no answer.",
                              .labels = {"verb", "resource", "code"}});
}

metrics::Histogram& ApiSeconds(metrics::Registry& registry) {
  return registry.NewHistogram({.name = "cachewarm_api_request_seconds",
                                .help = "Until the answer, of a watch until its head.",
                                .labels = {"verb"}},
                               metrics::SecondsBuckets());
}

metrics::Gauge& Admission(metrics::Registry& registry) {
  return registry.NewGauge({.name = "cachewarm_admission",
                            .help = "1 where new pods are injected by this.",
                            .labels = {"by"}});
}

metrics::Counter& WebhookRequests(metrics::Registry& registry) {
  return registry.NewCounter({.name = "cachewarm_webhook_requests_total",
                              .help = "Pods that the API server asked the webhook about.",
                              .labels = {"result"}});
}

metrics::Histogram& WebhookSeconds(metrics::Registry& registry) {
  return registry.NewHistogram({.name = "cachewarm_webhook_seconds",
                                .help = "How long the webhook took to answer.",
                                .labels = {}},
                               WebhookBuckets());
}

}  // namespace

Metrics MakeMetrics(metrics::Registry& registry, const std::string& version) {
  const std::vector<std::string> of_type = {"namespace", "warmup", "gpu_type"};
  registry
      .NewGauge({.name = "cachewarm_build_info",
                 .help = "The version that runs, as a label; the value is 1.",
                 .labels = {"version"}})
      .Set({version}, 1);
  return Metrics{
      .pod_starts =
          registry.NewCounter({.name = "cachewarm_pod_starts_total",
                               .help = "First starts of pods by what their engine was seen to do.",
                               .labels = {"namespace", "warmup", "gpu_type", "result"}}),
      .saved_seconds = registry.NewCounter(
          {.name = "cachewarm_saved_seconds_total",
           .help = "Net seconds that pods started earlier than the cold median, holds deducted.",
           .labels = of_type}),
      .lost_seconds = registry.NewCounter(
          {.name = "cachewarm_lost_seconds_total",
           .help = "Net seconds that pods started later than the cold median, holds included.",
           .labels = of_type}),
      .hold_seconds =
          registry.NewHistogram({.name = "cachewarm_hold_seconds",
                                 .help = "How long pods were held by our scheduling gate.",
                                 .labels = {"namespace", "warmup"}},
                                metrics::SecondsBuckets()),
      .builds = registry.NewCounter({.name = "cachewarm_builds_total",
                                     .help = "Builds by how they ended, and those elected.",
                                     .labels = {"namespace", "warmup", "gpu_type", "result"}}),
      .build_seconds = registry.NewHistogram(
          {.name = "cachewarm_build_seconds",
           .help = "From the election of a builder until its bundle was recorded or given up.",
           .labels = of_type},
          metrics::SecondsBuckets()),
      .gate_releases = registry.NewCounter({.name = "cachewarm_gate_releases_total",
                                            .help = "Held pods that were released, by reason.",
                                            .labels = {"namespace", "warmup", "reason"}}),
      .nodes_waiting = registry.NewGauge(
          {.name = "cachewarm_nodes_waiting",
           .help = "Nodes that wait for their turn to fetch a bundle of the warmup.",
           .labels = {"namespace", "warmup"}}),
      .startup_taints =
          registry.NewCounter({.name = "cachewarm_startup_taints_removed_total",
                               .help = "Nodes whose startup taint was removed, by reason.",
                               .labels = {"reason"}}),
      .rehearsals = registry.NewCounter({.name = "cachewarm_rehearsals_total",
                                         .help = "Dry-run rehearsals of injection by verdict.",
                                         .labels = {"result"}}),
      .reconciles = registry.NewCounter({.name = "cachewarm_reconciles_total",
                                         .help = "Reconciles by controller and result.",
                                         .labels = {"controller", "result"}}),
      .reconcile_seconds = registry.NewHistogram({.name = "cachewarm_reconcile_seconds",
                                                  .help = "How long one reconcile took.",
                                                  .labels = {"controller"}},
                                                 metrics::SecondsBuckets()),
      .api_requests = ApiRequests(registry),
      .api_seconds = ApiSeconds(registry),
      .admission = Admission(registry),
      .webhook_requests = WebhookRequests(registry),
      .webhook_seconds = WebhookSeconds(registry),
      .leader = registry.NewGauge({.name = "cachewarm_leader",
                                   .help = "1 while this process holds the Lease.",
                                   .labels = {}}),
  };
}

void Metrics::CountRelease(const std::string& ns, const std::string& warmup,
                           std::string_view reason, double held_seconds) const {
  gate_releases.Add({ns, warmup, std::string(reason)});
  hold_seconds.Observe({ns, warmup}, held_seconds);
}

void Metrics::Forget(const std::string& ns, const std::string& warmup) const {
  const std::map<std::string, std::string> match = {{"namespace", ns}, {"warmup", warmup}};
  for (metrics::Counter* counter :
       {&pod_starts, &saved_seconds, &lost_seconds, &builds, &gate_releases}) {
    counter->Remove(match);
  }
  for (metrics::Histogram* histogram : {&hold_seconds, &build_seconds}) {
    histogram->Remove(match);
  }
  nodes_waiting.Remove(match);
}

}  // namespace cachewarm::op

// SPDX-License-Identifier: Apache-2.0
#include "operator/daemon.h"

#include <thread>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/http/bounded_client.h"
#include "lib/kube/kubeconfig/selection.h"
#include "lib/kube/runtime/controller.h"
#include "lib/kube/runtime/event_recorder.h"
#include "lib/kube/runtime/leader_elector.h"
#include "lib/process/process.h"
#include "operator/apply/executor.h"
#include "operator/apply/factor_salt.h"
#include "operator/apply/log_reads.h"
#include "operator/controllers/annotation_requests.h"
#include "operator/controllers/held_pods.h"
#include "operator/controllers/nodes.h"
#include "operator/controllers/warmups.h"
#include "operator/crd_check.h"
#include "operator/dry_run/dry_run_queue.h"
#include "operator/dry_run/dry_runs.h"
#include "operator/dry_run/release_dry_runs.h"
#include "operator/observe/annotation_triggers.h"
#include "operator/observe/cluster_cache.h"
#include "operator/observe/triggers.h"
#include "operator/webhook/service.h"

namespace cachewarm::op {
namespace {

constexpr std::string_view kLeaseName = "cachewarm-operator";
constexpr std::string_view kReportingController = "cachewarm.io/operator";
// Interval of the warning that stores have not synced yet.
constexpr Duration kSyncLogInterval{60'000};
// Maximum time that the held-pod controller waits for the list of warmups before it starts. Without
// this list it knows only the deadlines in the pods' annotations. For a pod without such an
// annotation it assumes the default hold, so it releases the pod too early if the warmup allows a
// longer one.
constexpr Duration kWarmupListWait{2'000};
// Maximum time that a replica waits for its stores to sync before it joins the election. Because of
// this wait, a replica with permission to list every kind is elected before one that lacks it. The
// wait is not longer than the Lease lasts, so it does not delay the takeover from a dead leader.
constexpr Duration kSyncHeadStart{15'000};
// Maximum retry interval of the held-pod controller after errors of the API server. Short, because
// the pod stays held until a retry succeeds.
constexpr Duration kHeldRetry{2'000};
// Time from the moment at which /readyz begins to fail until kubelet has reported the replica as
// not ready: the readiness probe in operator.yaml of the chart must fail three times, 5 s apart.
constexpr Duration kUnreadyDelay{17'000};
constexpr Duration kWarmupRetry{30'000};
// Maximum retry interval of the other controllers, as in client-go.
constexpr Duration kUsualRetry{300'000};

BackoffPolicy UpTo(Duration most) {
  return {.first = Duration(5), .most = most, .factor = 2.0, .jitter = 0.0};
}

int WorkersFor(const kube::Lanes& lanes) {
  return static_cast<int>(lanes.usual + lanes.slow);
}

model::Settings SettingsOf(const Config& config) {
  model::Settings settings;
  settings.root = config.root;
  settings.builder_jobs_max = config.builder_jobs_max;
  settings.fetch_nodes_max = config.fetch_nodes_max;
  settings.harvest_interval = std::chrono::minutes(config.harvest_minutes);
  settings.fresh_nodes_tainted = config.fresh_nodes_tainted;
  settings.engine_logs = config.engine_logs;
  return settings;
}

}  // namespace

// All components in their order of construction.
struct Daemon::Components {
  Components(const Config& config, const DaemonDependencies& parts)
      : runtime{parts.client, parts.clock, parts.random, parts.log},
        crd_check({.client = parts.client, .clock = parts.clock, .log = parts.log}),
        cluster(runtime),
        warmup_queue(parts.clock, UpTo(kWarmupRetry), controllers::WarmupLanes(config.workers)),
        node_queue(parts.clock),
        held_queue(parts.clock, UpTo(kHeldRetry), controllers::kHeldLanes),
        annotation_queue(parts.clock, UpTo(kUsualRetry), controllers::kAnnotationLanes),
        dry_run_keys(parts.clock, UpTo(kUsualRetry), dry_run::kDryRunLanes),
        log_read_keys(parts.clock),
        triggers(cluster, {warmup_queue, node_queue, held_queue}, config.ns, parts.clock),
        annotation_triggers(cluster, annotation_queue),
        events(runtime,
               {.controller = std::string(kReportingController), .instance = config.identity}),
        release_refusals(parts.clock, [this](const std::string& ns) { AddWarmupsOf(ns); }),
        executor({.client = parts.client,
                  .clock = parts.clock,
                  .events = events,
                  .metrics = parts.metrics,
                  .log = parts.log,
                  .job_refusals = job_refusals,
                  .release_refusals = release_refusals}),
        factor_salt(
            {.client = parts.client, .clock = parts.clock, .log = parts.log, .ns = config.ns}),

        dry_runs(parts.client, parts.clock),
        release_dry_runs(
            {.client = parts.client, .clock = parts.clock, .refusals = release_refusals}),
        dry_run_queue({.dry_runs = dry_runs,
                       .releases = release_dry_runs,
                       .queue = dry_run_keys,
                       .clock = parts.clock,
                       .on_result =
                           [this](const std::string& warmup, const model::AdmissionDryRun& result) {
                             warmups.CountDryRun(result);
                             warmup_queue.Add(warmup);
                           }}),
        webhook({.ns = config.ns,
                 .root = config.root,
                 .listen_address = config.webhook_address,
                 .listen_port = config.webhook_port},
                {.client = parts.client,
                 .clock = parts.clock,
                 .log = parts.log,
                 .metrics = parts.metrics,
                 .warmups =
                     [this](std::string_view ns) { return cluster.warmup_views.ListNamespace(ns); },
                 .on_change = [this] { triggers.AddEverything(); }}),
        build_requests({.clock = parts.clock,
                        .log = parts.log,
                        .connect =
                            [](const std::string& host) {
                              return http::MakeBoundedClient(
                                  {.address = host, .user_agent = "cachewarm-operator"});
                            },
                        .wake = [this](const std::string& warmup) { warmup_queue.Add(warmup); }}),
        log_reads({.client = parts.client,
                   .clock = parts.clock,
                   .metrics = parts.metrics,
                   .log = parts.log,
                   .queue = log_read_keys,
                   .wake = [this](const std::string& warmup) { warmup_queue.Add(warmup); }}),
        warmups({.cluster = cluster,
                 .executor = executor,
                 .dry_runs = dry_runs,
                 .dry_run_queue = dry_run_queue,
                 .release_dry_runs = release_dry_runs,
                 .build_requests = build_requests,
                 .log_reads = log_reads,
                 .job_refusals = job_refusals,
                 .release_refusals = release_refusals,
                 .clock = parts.clock,
                 .metrics = parts.metrics,
                 .settings = SettingsOf(config),
                 .agent_namespace = config.ns,
                 .factor_salt =
                     [this](std::stop_token stop) { return factor_salt.Get(std::move(stop)); },
                 .admission_missing = [this] { return webhook.Missing(); }}),
        nodes(cluster, {.client = parts.client,
                        .clock = parts.clock,
                        .metrics = parts.metrics,
                        .log = parts.log,
                        .settings = SettingsOf(config),
                        .agent_namespace = config.ns}),
        held(cluster, {.client = parts.client,
                       .clock = parts.clock,
                       .events = events,
                       .metrics = parts.metrics,
                       .log = parts.log,
                       .release_refusals = release_refusals}),
        annotation_requests(
            cluster,
            {.client = parts.client, .clock = parts.clock, .events = events, .log = parts.log}) {
    triggers.Attach();
    annotation_triggers.Attach();
  }

  void AddWarmupsOf(const std::string& ns) {
    for (const auto& warmup : cluster.warmup_views.ListNamespace(ns)) {
      warmup_queue.Add(ns + "/" + warmup->name);
    }
  }

  kube::Runtime runtime;
  CrdCheck crd_check;
  observe::ClusterCache cluster;
  kube::WorkQueue warmup_queue;
  kube::WorkQueue node_queue;
  kube::WorkQueue held_queue;
  kube::WorkQueue annotation_queue;
  kube::WorkQueue dry_run_keys;
  kube::WorkQueue log_read_keys;
  observe::Triggers triggers;
  observe::AnnotationTriggers annotation_triggers;
  kube::EventRecorder events;
  apply::JobRefusals job_refusals;
  apply::ReleaseRefusals release_refusals;
  apply::Executor executor;
  apply::FactorSalt factor_salt;
  dry_run::DryRuns dry_runs;
  dry_run::ReleaseDryRuns release_dry_runs;
  dry_run::DryRunQueue dry_run_queue;
  webhook::Service webhook;
  apply::BuildRequests build_requests;
  apply::LogReads log_reads;
  controllers::Warmups warmups;
  controllers::Nodes nodes;
  controllers::HeldPods held;
  controllers::AnnotationRequests annotation_requests;
  std::vector<std::jthread> discarding;  // threads that DiscardKeys() starts
};

Daemon::Daemon(const Config& config, const DaemonDependencies& parts)
    : config_(config), parts_(parts), components_(std::make_unique<Components>(config, parts)) {}

Daemon::~Daemon() = default;

std::string Daemon::WhyNotReady() const {
  if (stopping_) {
    return "stopping\n";
  }
  if (const std::string problem = components_->crd_check.Problem(); !problem.empty()) {
    return problem + "\n";
  }
  if (!components_->cluster.HasSynced()) {
    return "stores not synced yet\n";
  }
  return components_->webhook.IsSettled() ? "" : "admission configuration not checked yet\n";
}

Duration Daemon::StopLimit() const {
  return process::kStopWithin + components_->webhook.StopDelay();
}

absl::StatusOr<std::unique_ptr<http::Server>> Daemon::Serve() {
  const auto metrics = [this](const http::ServerRequest&) {
    return http::ServerResponse{.content_type = std::string(metrics::kContentType),
                                .body = parts_.registry.Serialize()};
  };
  const auto healthy = [](const http::ServerRequest&) {
    return http::ServerResponse{.body = "ok\n"};
  };
  const auto ready = [this](const http::ServerRequest&) {
    const std::string why = WhyNotReady();
    return why.empty() ? http::ServerResponse{.body = "ok\n"}
                       : http::ServerResponse{.status = 503, .body = why};
  };
  return http::StartServer({.address = config_.listen_address, .port = config_.listen_port},
                           {{"/metrics", metrics}, {"/healthz", healthy}, {"/readyz", ready}});
}

absl::Status Daemon::Run(std::stop_token stop) {
  CW_RETURN_IF_ERROR(parts_.registry.status());
  CW_ASSIGN_OR_RETURN(const std::unique_ptr<http::Server> server, Serve());
  port_ = server->port();
  // Stops the reflectors, the webhook and the held-pod controller when `stop` is requested, and
  // also when the election ends for another reason.
  std::stop_source reflector_stop;
  const std::stop_callback forward(stop, [&] { reflector_stop.request_stop(); });
  components_->cluster.Start(reflector_stop.get_token());
  DiscardKeys();
  std::jthread crd_check(
      [this, stopped = reflector_stop.get_token()] { components_->crd_check.Run(stopped); });
  std::jthread webhook(
      [this, stopped = reflector_stop.get_token()] { components_->webhook.Run(stopped); });
  parts_.log.Info("operator started", {{"listenAddress", config_.listen_address},
                                       {"port", static_cast<int64_t>(server->port())},
                                       {"identity", config_.identity}});
  absl::Status ended;
  std::jthread held;
  if (AwaitHeldPodStores(stop)) {
    held = std::jthread(
        [this, stopped = reflector_stop.get_token()] { RunHeldPodController(stopped); });
    ended = RunElection(stop);
    AwaitEndpointRemoval(stop);
  }
  reflector_stop.request_stop();
  crd_check.join();
  webhook.join();
  held = {};  // joins the threads of the held-pod controller
  components_->cluster.Join();
  parts_.log.Info("operator stopped", {{"err", ended.ok() ? std::string() : Message(ended)}});
  return ended;
}

void Daemon::AwaitEndpointRemoval(std::stop_token stop) {
  stopping_ = true;
  if (components_->webhook.port() != 0) {
    SleepFor(parts_.clock, kUnreadyDelay, stop);
  }
}

bool Daemon::AwaitStores(const std::vector<const kube::Store*>& stores, std::stop_token stop) {
  while (!kube::AwaitSynced(stores, parts_.clock, kSyncLogInterval, stop)) {
    if (stop.stop_requested()) {
      return false;
    }
    parts_.log.Warning("waiting for the first lists of watched objects from the API server");
  }
  return true;
}

bool Daemon::AwaitHeldPodStores(std::stop_token stop) {
  if (!AwaitStores({&components_->cluster.pods.store()}, stop)) {
    return false;
  }
  kube::AwaitSynced({&components_->cluster.warmups.store()}, parts_.clock, kWarmupListWait, stop);
  return !stop.stop_requested();
}

void Daemon::RunHeldPodController(std::stop_token stop) {
  RunController(
      {.name = "held",
       .workers = WorkersFor(controllers::kHeldLanes),
       .terminal_retry = kHeldRetry},
      components_->held_queue,
      [this](const std::string& key, std::stop_token ending) {
        return components_->held.Reconcile(key, ending);
      },
      stop);
}

void Daemon::DiscardKeys() {
  for (kube::WorkQueue* queue :
       {&components_->warmup_queue, &components_->node_queue, &components_->annotation_queue}) {
    components_->discarding.emplace_back([queue](const std::stop_token& stop) {
      while (const std::optional<std::string> key = queue->Get(stop)) {
        queue->Done(*key);
      }
    });
  }
}

absl::Status Daemon::RunElection(std::stop_token stop) {
  if (!components_->crd_check.AwaitPassed(stop)) {
    return absl::OkStatus();
  }
  if (!config_.leader_elect) {
    Lead(stop);
    return absl::OkStatus();
  }
  kube::AwaitSynced(components_->cluster.Stores(), parts_.clock, kSyncHeadStart, stop);
  kube::LeaderElector elector(
      components_->runtime,
      {.lease = {.ns = config_.ns, .name = std::string(kLeaseName)},
       .identity = fmt::format("{}_{:08x}", config_.identity,
                               static_cast<uint32_t>(parts_.random() * 4294967295.0))});
  return elector.Run([this](std::stop_token leading) { Lead(leading); }, stop);
}

void Daemon::RunController(kube::ControllerOptions options, kube::WorkQueue& queue,
                           kube::Reconcile reconcile, std::stop_token stop) {
  options.on_reconcile = [this, name = options.name](std::string_view result, Duration took) {
    parts_.metrics.reconciles.Add({name, std::string(result)});
    parts_.metrics.reconcile_seconds.Observe({name}, std::chrono::duration<double>(took).count());
  };
  kube::Controller controller(queue, parts_.clock, parts_.log, std::move(options),
                              std::move(reconcile));
  controller.Run(stop);
}

void Daemon::Lead(std::stop_token stop) {
  if (stop.stop_requested()) {
    return;
  }
  parts_.metrics.leader.Set({}, 1);
  parts_.log.Info("leading");
  components_->held.SetLeading(true);
  components_->held.Sweep(stop);
  components_->webhook.SetLeading(true);
  if (AwaitStores(components_->cluster.Stores(), stop)) {
    RunLeaderControllers(stop);
  }
  components_->held.SetLeading(false);
  components_->webhook.SetLeading(false);
  components_->build_requests.Stop();
  parts_.metrics.ForgetWarmups();
  parts_.metrics.leader.Set({}, 0);
}

void Daemon::RunLeaderControllers(std::stop_token stop) {
  components_->discarding.clear();  // joins the threads
  components_->triggers.AddEverything();
  components_->annotation_triggers.AddEverything();
  std::vector<std::jthread> controllers;
  controllers.emplace_back([&] {
    RunController(
        {.name = "nodes", .workers = 2}, components_->node_queue,
        [this](const std::string& key, std::stop_token ending) {
          return components_->nodes.Reconcile(key, ending);
        },
        stop);
  });
  controllers.emplace_back([&] {
    RunController(
        {.name = "annotations", .workers = WorkersFor(controllers::kAnnotationLanes)},
        components_->annotation_queue,
        [this](const std::string& key, std::stop_token ending) {
          return components_->annotation_requests.Reconcile(key, ending);
        },
        stop);
  });
  controllers.emplace_back([&] {
    RunController(
        {.name = "dry_runs", .workers = WorkersFor(dry_run::kDryRunLanes)},
        components_->dry_run_keys,
        [this](const std::string& key, std::stop_token ending) {
          return components_->dry_run_queue.Reconcile(key, ending);
        },
        stop);
  });
  controllers.emplace_back([&] {
    RunController(
        {.name = "engine_logs", .workers = apply::kLogReadWorkers}, components_->log_read_keys,
        [this](const std::string& key, std::stop_token ending) {
          return components_->log_reads.Reconcile(key, ending);
        },
        stop);
  });
  RunController(
      {.name = "warmups",
       .workers = WorkersFor(controllers::WarmupLanes(config_.workers)),
       .terminal_retry = kWarmupRetry},
      components_->warmup_queue,
      [this](const std::string& key, std::stop_token ending) {
        return components_->warmups.Reconcile(key, ending);
      },
      stop);
}

absl::StatusOr<std::unique_ptr<kube::Client>> ConnectToCluster(
    const Config& config, const Clock& clock, Random random, const Metrics& metrics,
    std::unique_ptr<http::Client>& http) {
  const kube::PodEnvironment environment{
      .service_host = process::Environment("KUBERNETES_SERVICE_HOST").value_or(""),
      .service_port = process::Environment("KUBERNETES_SERVICE_PORT").value_or("")};
  CW_ASSIGN_OR_RETURN(kube::ClusterConfig cluster,
                      kube::FindConfig(config.kubeconfig, environment));
  CW_ASSIGN_OR_RETURN(http, http::MakeClient({.tls = cluster.tls,
                                              .user_agent = "cachewarm-operator",
                                              .proxy = {.always = cluster.proxy}}));
  return kube::MakeHttpClient(
      *http, clock, std::move(random),
      {.config = std::move(cluster), .on_request = [&metrics](const kube::RequestReport& report) {
         metrics.api_requests.Add({report.verb, report.resource, std::to_string(report.http_code)});
         metrics.api_seconds.Observe({report.verb},
                                     std::chrono::duration<double>(report.took).count());
       }});
}

}  // namespace cachewarm::op

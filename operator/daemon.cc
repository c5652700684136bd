// SPDX-License-Identifier: Apache-2.0
#include "operator/daemon.h"

#include <thread>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/http/bounded_client.h"
#include "lib/kube/runtime/controller.h"
#include "lib/kube/runtime/event_recorder.h"
#include "lib/kube/runtime/leader_elector.h"
#include "lib/process/process.h"
#include "operator/admission/rehearsals.h"
#include "operator/admission/webhook/service.h"
#include "operator/apply/executor.h"
#include "operator/controllers/held_pods.h"
#include "operator/controllers/nodes.h"
#include "operator/controllers/warmups.h"
#include "operator/controllers/wishes.h"
#include "operator/observe/triggers.h"
#include "operator/observe/wish_triggers.h"
#include "operator/observe/world.h"

namespace cachewarm::op {
namespace {

constexpr std::string_view kLeaseName = "cachewarm-operator";
constexpr std::string_view kReportingController = "cachewarm.io/operator";
constexpr Duration kSyncLook{60'000};  // a log line this often while the stores are not full
// Both lists mostly come within a second. Without the warmups only the pods' own notes count, and a
// long hold that none is noted of would be cut short because one list came before the other.
constexpr Duration kWarmupsTurn{2'000};
// A replica that has every store leads better than one that may not list some kind. It comes first
// for as long as the Lease of a dead leader goes on.
constexpr Duration kFullStoresFirst{15'000};
// An API server that was away, or refused us for a while, is asked again this often at least. Held
// pods wait for nothing else.
constexpr Duration kHeldRetry{2'000};
// The readiness probe of manifests/operator.yaml: three failures, 5 s apart.
constexpr Duration kSeenUnready{17'000};
constexpr Duration kWarmupRetry{30'000};

BackoffPolicy UpTo(Duration most) {
  return {.first = Duration(5), .most = most, .factor = 2.0, .jitter = 0.0};
}

plan::Settings SettingsOf(const Config& config) {
  plan::Settings settings;
  settings.root = config.root;
  settings.builder_jobs_max = config.builder_jobs_max;
  settings.fetch_nodes_max = config.fetch_nodes_max;
  settings.fresh_nodes_tainted = config.fresh_nodes_tainted;
  return settings;
}

}  // namespace

// Everything with a lifetime, in the order in which it must be made.
struct Daemon::Room {
  Room(const Config& config, const DaemonParts& parts)
      : runtime{parts.client, parts.clock, parts.random, parts.log},
        world(runtime),
        warmup_queue(parts.clock, UpTo(kWarmupRetry)),
        node_queue(parts.clock),
        held_queue(parts.clock, UpTo(kHeldRetry)),
        wish_queue(parts.clock),
        triggers(world, {warmup_queue, node_queue, held_queue}),
        wish_triggers(world, wish_queue),
        events(runtime,
               {.controller = std::string(kReportingController), .instance = config.identity}),
        executor({.client = parts.client,
                  .clock = parts.clock,
                  .events = events,
                  .metrics = parts.metrics,
                  .log = parts.log,
                  .job_refusals = job_refusals}),
        rehearsals(parts.client, parts.clock),
        webhook({.ns = config.ns,
                 .root = config.root,
                 .listen_address = config.webhook_address,
                 .listen_port = config.webhook_port},
                {.client = parts.client,
                 .clock = parts.clock,
                 .log = parts.log,
                 .metrics = parts.metrics,
                 .warmups =
                     [this](std::string_view ns) { return world.warmup_views.ListNamespace(ns); },
                 .on_change = [this] { triggers.AddEverything(); }}),
        build_requests({.clock = parts.clock,
                        .log = parts.log,
                        .connect =
                            [](const std::string& host) {
                              return http::MakeBoundedClient(
                                  {.address = host, .user_agent = "cachewarm-operator"});
                            },
                        .wake = [this](const std::string& warmup) { warmup_queue.Add(warmup); }}),
        warmups({.world = world,
                 .executor = executor,
                 .rehearsals = rehearsals,
                 .build_requests = build_requests,
                 .job_refusals = job_refusals,
                 .clock = parts.clock,
                 .metrics = parts.metrics,
                 .settings = SettingsOf(config),
                 .agent_namespace = config.ns,
                 .admission_missing = [this] { return webhook.Missing(); }}),
        nodes(world, {.client = parts.client,
                      .clock = parts.clock,
                      .metrics = parts.metrics,
                      .log = parts.log,
                      .settings = SettingsOf(config),
                      .agent_namespace = config.ns,
                      .writes_condition = config.node_condition}),
        held(world, {.client = parts.client,
                     .clock = parts.clock,
                     .events = events,
                     .metrics = parts.metrics,
                     .log = parts.log}),
        wishes(world,
               {.client = parts.client, .clock = parts.clock, .events = events, .log = parts.log}) {
    triggers.Attach();
    wish_triggers.Attach();
  }

  kube::Runtime runtime;
  observe::World world;
  kube::WorkQueue warmup_queue;
  kube::WorkQueue node_queue;
  kube::WorkQueue held_queue;
  kube::WorkQueue wish_queue;
  observe::Triggers triggers;
  observe::WishTriggers wish_triggers;
  kube::EventRecorder events;
  apply::JobRefusals job_refusals;
  apply::Executor executor;
  admission::Rehearsals rehearsals;
  webhook::Service webhook;
  apply::BuildRequests build_requests;
  controllers::Warmups warmups;
  controllers::Nodes nodes;
  controllers::HeldPods held;
  controllers::Wishes wishes;
  std::vector<std::jthread> forgetting;  // see ForgetKeys()
};

Daemon::Daemon(const Config& config, const DaemonParts& parts)
    : config_(config), parts_(parts), room_(std::make_unique<Room>(config, parts)) {}

Daemon::~Daemon() = default;

std::string Daemon::WhyNotReady() const {
  if (leaving_) {
    return "stopping\n";
  }
  if (!room_->world.HasSynced()) {
    return "stores not synced yet\n";
  }
  return room_->webhook.IsSettled() ? "" : "admission not looked after yet\n";
}

Duration Daemon::StopLimit() const {
  return process::kStopWithin + room_->webhook.StopDelay();
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
  // The world ends with `stop` and also when this function returns for another reason.
  std::stop_source world_stop;
  const std::stop_callback forward(stop, [&] { world_stop.request_stop(); });
  room_->world.Start(world_stop.get_token());
  ForgetKeys();
  std::jthread webhook([this, stopped = world_stop.get_token()] { room_->webhook.Run(stopped); });
  parts_.log.Info("operator started", {{"listen", config_.listen_address},
                                       {"port", static_cast<int64_t>(server->port())},
                                       {"identity", config_.identity}});
  absl::Status ended;
  std::jthread held;
  if (AwaitPods(stop)) {
    held = std::jthread([this, stopped = world_stop.get_token()] { WatchHeldPods(stopped); });
    ended = StandForElection(stop);
    LoseEndpoint(stop);
  }
  world_stop.request_stop();
  webhook.join();
  held = {};  // joins
  room_->world.Join();
  server->Stop();
  parts_.log.Info("operator stopped", {{"reason", ended.ok() ? "asked to" : Message(ended)}});
  return ended;
}

void Daemon::LoseEndpoint(std::stop_token stop) {
  leaving_ = true;
  if (room_->webhook.port() != 0) {
    SleepFor(parts_.clock, kSeenUnready, stop);
  }
}

bool Daemon::AwaitStores(const std::vector<const kube::Store*>& stores, std::stop_token stop) {
  while (!kube::AwaitSynced(stores, parts_.clock, kSyncLook, stop)) {
    if (stop.stop_requested()) {
      return false;
    }
    parts_.log.Warning("stores not synced yet");
  }
  return true;
}

bool Daemon::AwaitPods(std::stop_token stop) {
  if (!AwaitStores({&room_->world.pods.store()}, stop)) {
    return false;
  }
  kube::AwaitSynced({&room_->world.warmups.store()}, parts_.clock, kWarmupsTurn, stop);
  return !stop.stop_requested();
}

void Daemon::WatchHeldPods(std::stop_token stop) {
  RunController(
      {.name = "held", .workers = controllers::kHeldWorkers, .terminal_retry = kHeldRetry},
      room_->held_queue,
      [this](const std::string& key, std::stop_token ending) {
        return room_->held.Reconcile(key, ending);
      },
      stop);
}

void Daemon::ForgetKeys() {
  for (kube::WorkQueue* queue : {&room_->warmup_queue, &room_->node_queue, &room_->wish_queue}) {
    room_->forgetting.emplace_back([queue](const std::stop_token& stop) {
      while (const std::optional<std::string> key = queue->Get(stop)) {
        queue->Done(*key);
      }
    });
  }
}

absl::Status Daemon::StandForElection(std::stop_token stop) {
  if (!config_.leader_elect) {
    Lead(stop);
    return absl::OkStatus();
  }
  kube::AwaitSynced(room_->world.Stores(), parts_.clock, kFullStoresFirst, stop);
  kube::LeaderElector elector(
      room_->runtime,
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
  room_->held.SetLeading(true);
  room_->held.Sweep(stop);
  room_->webhook.SetLeading(true);
  if (AwaitStores(room_->world.Stores(), stop)) {
    RunPlans(stop);
  }
  room_->held.SetLeading(false);
  room_->webhook.SetLeading(false);
  room_->build_requests.Stop();
  parts_.metrics.leader.Set({}, 0);
}

void Daemon::RunPlans(std::stop_token stop) {
  room_->forgetting.clear();  // joins
  room_->triggers.AddEverything();
  room_->wish_triggers.AddEverything();
  std::vector<std::jthread> controllers;
  controllers.emplace_back([&] {
    RunController(
        {.name = "nodes", .workers = 2}, room_->node_queue,
        [this](const std::string& key, std::stop_token ending) {
          return room_->nodes.Reconcile(key, ending);
        },
        stop);
  });
  controllers.emplace_back([&] {
    RunController(
        {.name = "wishes"}, room_->wish_queue,
        [this](const std::string& key, std::stop_token ending) {
          return room_->wishes.Reconcile(key, ending);
        },
        stop);
  });
  RunController(
      {.name = "warmups", .workers = config_.workers, .terminal_retry = kWarmupRetry},
      room_->warmup_queue,
      [this](const std::string& key, std::stop_token ending) {
        return room_->warmups.Reconcile(key, ending);
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
  CW_ASSIGN_OR_RETURN(http,
                      http::MakeClient({.tls = cluster.tls, .user_agent = "cachewarm-operator"}));
  return kube::MakeHttpClient(
      *http, clock, std::move(random),
      {.config = std::move(cluster), .on_request = [&metrics](const kube::RequestReport& report) {
         metrics.api_requests.Add({report.verb, report.resource, std::to_string(report.http_code)});
         metrics.api_seconds.Observe({report.verb},
                                     std::chrono::duration<double>(report.took).count());
       }});
}

}  // namespace cachewarm::op

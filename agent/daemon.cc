// SPDX-License-Identifier: Apache-2.0
#include "agent/daemon.h"

#include <fmt/format.h>

#include <utility>

#include "agent/evidence/unavailable_watcher.h"
#include "agent/remote/remote_endpoint.h"
#include "agent/tree/evict.h"
#include "agent/tree/journal.h"
#include "agent/tree/retire.h"
#include "agent/tree/root.h"
#include "lib/base/status.h"

namespace cachewarm::agent {
namespace {

constexpr Duration kRetryInterval(5'000);
// An agent exits within seconds of SIGTERM; if the lock is held longer than this, the previous
// agent hangs.
constexpr Duration kLockTimeout(60'000);
// An iteration of the sync loop takes seconds; if it takes longer than this, the disk hangs.
// /healthz then fails, so kubelet restarts the agent, which makes the problem visible.
constexpr Duration kStallTimeout(180'000);
constexpr size_t kJobsMax = 64;

std::unique_ptr<Watcher> MakeWatcher(const Clock& clock, Log& log) {
  absl::StatusOr<std::unique_ptr<Watcher>> watcher = Watcher::Start({}, clock, log);
  if (watcher.ok()) {
    return *std::move(watcher);
  }
  log.Warning("inotify unavailable; pod starts will be reported as unknown",
              {{"err", Message(watcher.status())}});
  return MakeUnavailableWatcher();
}

// Returns null if the endpoint cannot start: pods then compile without it.
std::unique_ptr<RemoteEndpoint> MakeEndpoint(const fs::Dir& root,
                                             const DaemonDependencies& dependencies) {
  absl::StatusOr<std::unique_ptr<RemoteEndpoint>> endpoint =
      RemoteEndpoint::Start({.root = root,
                             .clock = dependencies.clock,
                             .log = dependencies.log,
                             .metrics = dependencies.metrics});
  if (endpoint.ok()) {
    return *std::move(endpoint);
  }
  dependencies.log.Error("cannot start the Redis endpoint; pods compile without it",
                         {{"err", Message(endpoint.status())}});
  return nullptr;
}

// Retires (renames) trees that were made for another GPU type or CPU class, or that a power cut may
// have damaged, so that no pod gets them any more.
absl::Status RetireTrees(const fs::Dir& root, const GpuObservation& node,
                         const DaemonDependencies& dependencies) {
  const RootUser user{
      .node = NodeRecord(root, node.is_gpu_unknown ? std::string() : node.facts.gpu_type,
                         node.facts.cpu_class),
      .boot_id = dependencies.boot_id,
      .is_gpu_known = !node.is_gpu_unknown};
  if (user.node.empty()) {
    return absl::OkStatus();
  }
  CW_ASSIGN_OR_RETURN(const int retired,
                      RetireForeignTrees(root, user,
                                         {.folders = caches::CacheTable::AllPresets().Directories(),
                                          .now = dependencies.clock.Now()}));
  if (retired > 0) {
    dependencies.log.Warning(
        "retired trees built for another GPU type or CPU class, or not completely on the disk when "
        "the machine restarted",
        {{"trees", retired}});
  }
  return absl::OkStatus();
}

// Completes or discards the interrupted work of an earlier process, and retires foreign trees.
absl::Status Recover(const fs::Dir& root, const GpuObservation& node,
                     const DaemonDependencies& dependencies) {
  CW_RETURN_IF_ERROR(SweepLeftovers(root));
  CW_RETURN_IF_ERROR(RepairJournal(root, dependencies.clock.Now()));
  CW_RETURN_IF_ERROR(RemoveEmptyFolders(root));
  return RetireTrees(root, node, dependencies);
}

}  // namespace

Daemon::Daemon(const Config& config, const DaemonDependencies& dependencies)
    : config_(config),
      dependencies_(dependencies),
      runtime_{dependencies.client, dependencies.clock, dependencies.random, dependencies.log},
      own_(runtime_, config.node_name,
           [this](std::shared_ptr<const api::NodeCache> node_cache) {
             OnNodeCache(std::move(node_cache));
           }),
      facts_(
          dependencies.clock, dependencies.log, dependencies.probes,
          [this](GpuObservation gpu) { OnFacts(std::move(gpu)); }, dependencies.facts_options) {}

absl::Status Daemon::Run(std::stop_token stop) {
  CW_RETURN_IF_ERROR(dependencies_.registry.status());
  CW_ASSIGN_OR_RETURN(const std::unique_ptr<http::Server> server, Serve());
  port_ = server->port();
  dependencies_.log.Info("agent started", {{"node", config_.node_name},
                                           {"root", config_.root},
                                           {"store", config_.store.url},
                                           {"version", dependencies_.version},
                                           {"port", static_cast<int64_t>(server->port())}});
  RetireAfterReboot();
  {
    const std::jthread probing([this, stop] { facts_.Run(stop); });
    if (AwaitFacts(stop)) {
      RunOnNode(stop);
    }
  }
  dependencies_.log.Info("agent stopped");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<http::Server>> Daemon::Serve() {
  const auto metrics = [this](const http::ServerRequest&) {
    return http::ServerResponse{.content_type = std::string(metrics::kContentType),
                                .body = dependencies_.registry.Serialize()};
  };
  const auto healthy = [this](const http::ServerRequest&) {
    const absl::Status health = Health();
    return health.ok() ? http::ServerResponse{.body = "ok\n"}
                       : http::ServerResponse{.status = 503, .body = Message(health) + "\n"};
  };
  const auto ready = [this](const http::ServerRequest&) {
    return IsReady()
               ? http::ServerResponse{.body = "ok\n"}
               : http::ServerResponse{.status = 503,
                                      .body =
                                          "NodeCache not synced yet, or root directory (--root) "
                                          "not writable\n"};
  };
  return http::StartServer({.address = config_.listen_address, .port = config_.listen_port},
                           {{"/metrics", metrics}, {"/healthz", healthy}, {"/readyz", ready}});
}

void Daemon::RetireAfterReboot() {
  const absl::StatusOr<fs::Dir> root = OpenRoot(config_.root);
  if (!root.ok() || !IsNewBoot(*root, dependencies_.boot_id)) {
    return;
  }
  const absl::StatusOr<fingerprint::NodeFacts> facts = dependencies_.probes.without_gpu();
  const absl::StatusOr<fs::Fd> held =
      LockRoot(*root, {.clock = dependencies_.clock, .timeout = Duration(0)});
  if (facts.ok() && held.ok()) {
    const GpuObservation node{.facts = *facts, .is_gpu_unknown = facts->gpu_type.empty()};
    // AwaitRoot() does it again, and reports the error.
    RetireTrees(*root, node, dependencies_).IgnoreError();
  }
}

bool Daemon::AwaitFacts(std::stop_token stop) {
  const MonoTime end = dependencies_.clock.Monotonic() + dependencies_.facts_options.first;
  {
    std::unique_lock lock(mutex_);
    while (!gpu_.has_value() && !stop.stop_requested() && dependencies_.clock.Monotonic() < end) {
      dependencies_.clock.WaitUntil(lock, gpu_known_, end, stop);
    }
  }
  while (!stop.stop_requested()) {
    absl::StatusOr<fingerprint::NodeFacts> facts = dependencies_.probes.without_gpu();
    std::unique_lock lock(mutex_);
    if (!gpu_.has_value() && facts.ok()) {
      // The driver is slow or hangs. Use facts without a GPU type until it answers, so that the
      // directories of pods are prepared meanwhile.
      gpu_ = GpuObservation{.facts = *facts, .is_gpu_unknown = facts->gpu_type.empty()};
    }
    if (gpu_.has_value()) {
      return true;
    }
    dependencies_.clock.WaitUntil(lock, gpu_known_,
                                  dependencies_.clock.Monotonic() + kRetryInterval, stop);
  }
  return false;
}

void Daemon::OnFacts(GpuObservation gpu) {
  std::stop_source outdated;
  bool is_outdated = false;
  {
    std::lock_guard lock(mutex_);
    const bool changed = gpu_.has_value() &&
                         (gpu_->facts != gpu.facts || gpu_->is_gpu_unknown != gpu.is_gpu_unknown);
    if (changed && on_node_.has_value()) {
      outdated = *on_node_;
      is_outdated = true;
    } else if (loop_ != nullptr) {
      loop_->SetGpu(gpu);
    }
    gpu_ = std::move(gpu);
  }
  gpu_known_.notify_all();
  if (is_outdated) {
    outdated.request_stop();
  }
}

void Daemon::RunOnNode(std::stop_token stop) {
  StatusWriter writer(runtime_, {.node_name = config_.node_name});
  // The writer gets `stop` too, so that it ends together with the loop and not after it.
  const std::jthread writing([&] { writer.Run(stop); });
  while (!stop.stop_requested()) {
    // Gets a stop request when `stop` gets one, and when the facts change. After a change, the next
    // pass opens the root again, which retires the trees of the earlier GPU type, and starts a new
    // loop.
    std::stop_source on_node;
    const std::stop_callback forward(stop, [&on_node] { on_node.request_stop(); });
    GpuObservation gpu;
    {
      std::lock_guard lock(mutex_);
      on_node_ = on_node;
      gpu = *gpu_;
    }
    if (const std::optional<LockedRoot> root = AwaitRoot(gpu, writer, on_node.get_token(), stop);
        root.has_value()) {
      RunLoop(root->dir, gpu, writer, on_node.get_token(), stop);
    }
    std::lock_guard lock(mutex_);
    on_node_.reset();
  }
  if (watching_.joinable()) {
    watching_.join();
  }
}

absl::StatusOr<Daemon::LockedRoot> Daemon::AcquireRoot(const GpuObservation& node,
                                                       std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(fs::Dir root, OpenRoot(config_.root));
  const auto lock = [&](Duration timeout) {
    return LockRoot(root, {.clock = dependencies_.clock, .timeout = timeout, .stop = stop});
  };
  absl::StatusOr<fs::Fd> held = lock(Duration(0));
  if (absl::IsDeadlineExceeded(held.status())) {
    dependencies_.log.Info("waiting for the previous agent to release the lock");
    held = lock(kLockTimeout);
  }
  CW_RETURN_IF_ERROR(held.status());
  CW_RETURN_IF_ERROR(Recover(root, node, dependencies_));
  return LockedRoot{.dir = std::move(root), .lock = *std::move(held)};
}

std::optional<Daemon::LockedRoot> Daemon::AwaitRoot(const GpuObservation& node,
                                                    StatusWriter& writer, std::stop_token stop,
                                                    std::stop_token daemon_stop) {
  std::string last_message;
  while (true) {
    absl::StatusOr<LockedRoot> root = AcquireRoot(node, stop);
    if (root.ok()) {
      return *std::move(root);
    }
    if (stop.stop_requested()) {
      return std::nullopt;
    }
    if (Message(root.status()) != last_message) {
      last_message = Message(root.status());
      dependencies_.log.Error("root directory unusable", {{"err", last_message}});
    }
    // Start the watch now: it provides the uid of the NodeCache that the status is written to.
    StartWatch(daemon_stop);
    ReportUnusable(node, last_message, writer);
    SleepFor(dependencies_.clock, kRetryInterval, stop);
  }
}

void Daemon::ReportUnusable(const GpuObservation& node, const std::string& why,
                            StatusWriter& writer) {
  api::NodeCacheStatus status;
  status.node = NodeStatusOf(node, dependencies_.version);
  status.node.root = {.path = config_.root, .limit_bytes = config_.byte_limit, .message = why};
  std::string target;
  {
    std::lock_guard lock(mutex_);
    target = latest_ == nullptr ? std::string() : latest_->uid;
  }
  writer.Set(target, std::move(status));
}

void Daemon::RunLoop(const fs::Dir& root, const GpuObservation& node, StatusWriter& writer,
                     std::stop_token stop, std::stop_token daemon_stop) {
  const std::unique_ptr<Watcher> watcher = MakeWatcher(dependencies_.clock, dependencies_.log);
  bundle::WorkerPool workers(config_.workers + kPublicationWorkers, kJobsMax);
  Loop* running = nullptr;
  const Context context{.root = root,
                        .store = dependencies_.store,
                        .watcher = *watcher,
                        .workers = workers,
                        .clock = dependencies_.clock,
                        .random = dependencies_.random,
                        .log = dependencies_.log,
                        .metrics = dependencies_.metrics,
                        .node = node.facts,
                        .transfer_threads = config_.transfer_threads,
                        .keys = config_.keys,
                        .limits = config_.limits,
                        .factor_salt_file = config_.factor_salt_file,
                        .wake = [&running] { running->Wake(); }};
  const std::unique_ptr<RemoteEndpoint> endpoint =
      config_.redis_endpoint ? MakeEndpoint(root, dependencies_) : nullptr;
  LoopOptions options{.limit_bytes = config_.byte_limit,
                      .disk = config_.disk,
                      .version = dependencies_.version,
                      .scrub = Duration(config_.scrub_seconds * 1000)};
  if (endpoint != nullptr) {
    options.serve_redis = [&endpoint](std::set<std::string> trees) {
      endpoint->Serve(std::move(trees));
    };
  }
  Loop loop(context, node, std::move(options),
            [&](const std::string& target, api::NodeCacheStatus status) {
              is_ready_ = own_.HasSynced() && status.node.root.writable;
              writer.Set(target, std::move(status));
            });
  running = &loop;
  // The first iteration repairs the mounts. Run it before the watch starts: the spec is still
  // unknown then, so no fetch or other slow step can delay the repair.
  loop.RunIteration();
  {
    std::lock_guard lock(mutex_);
    loop_ = &loop;
    loop.SetDesired(latest_);
    if (gpu_->facts == node.facts) {
      loop.SetGpu(*gpu_);  // the last query may have failed since the caller read `gpu_`
    }
  }
  StartWatch(daemon_stop);
  loop.Run(stop);
  std::lock_guard lock(mutex_);
  loop_ = nullptr;
}

void Daemon::StartWatch(std::stop_token stop) {
  if (!watching_.joinable()) {
    watching_ = std::jthread([this, stop] { own_.Run(stop); });
  }
}

void Daemon::OnNodeCache(std::shared_ptr<const api::NodeCache> node_cache) {
  bool is_offer_changed = false;
  {
    std::lock_guard lock(mutex_);
    is_offer_changed = latest_ != nullptr && node_cache != nullptr &&
                       (latest_->spec.node.devices != node_cache->spec.node.devices ||
                        latest_->spec.node.published != node_cache->spec.node.published);
    latest_ = std::move(node_cache);
    if (loop_ != nullptr) {
      loop_->SetDesired(latest_);
    }
  }
  if (is_offer_changed) {
    facts_.Wake();
  }
}

absl::Status Daemon::Health() const {
  std::lock_guard lock(mutex_);
  if (loop_ == nullptr) {
    return absl::OkStatus();
  }
  const Duration silence = dependencies_.clock.Monotonic() - loop_->last_iteration();
  if (silence >= kStallTimeout) {
    return absl::UnavailableError(
        fmt::format("sync loop has made no progress for {} s; check the disk of the agent's root "
                    "directory (--root)",
                    std::chrono::duration_cast<std::chrono::seconds>(silence).count()));
  }
  return loop_->is_root_gone()
             ? absl::UnavailableError(
                   "the agent's root directory (--root) was removed; restart the agent")
             : absl::OkStatus();
}

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/daemon.h"

#include <fmt/format.h>

#include <utility>

#include "agent/blind_watcher.h"
#include "agent/steps/workers.h"
#include "agent/tree/journal.h"
#include "agent/tree/retire.h"
#include "agent/tree/root.h"
#include "lib/base/status.h"

namespace cachewarm::agent {
namespace {

constexpr Duration kAskAgain(5'000);
// An agent ends within seconds of SIGTERM; one that is still there after this is stuck.
constexpr Duration kLockMost(60'000);
// A turn is short; longer silence means that the disk hangs, and a restart shows it.
constexpr Duration kTurnMost(180'000);
constexpr size_t kJobsMax = 64;

std::unique_ptr<Watcher> MakeWatcher(const Clock& clock, Log& log) {
  absl::StatusOr<std::unique_ptr<Watcher>> watcher = Watcher::Start({}, clock, log);
  if (watcher.ok()) {
    return *std::move(watcher);
  }
  log.Warning("file events cannot be watched", {{"message", Message(watcher.status())}});
  return MakeBlindWatcher();
}

// What an earlier process left in the middle, and what another node did, before anything new.
absl::Status Recover(const fs::Dir& root, const fingerprint::NodeFacts& node, WallTime now,
                     Log& log) {
  CW_RETURN_IF_ERROR(SweepLeftovers(root));
  CW_RETURN_IF_ERROR(MendJournal(root, now));
  CW_ASSIGN_OR_RETURN(
      const int retired,
      RetireForeignTrees(root, fmt::format("{}\n{}\n", node.gpu_type, node.cpu_class),
                         {.folders = caches::CacheTable::AllPresets().Directories(), .now = now}));
  if (retired > 0) {
    log.Warning("trees of another kind of node retired", {{"trees", retired}});
  }
  return absl::OkStatus();
}

}  // namespace

Daemon::Daemon(const Config& config, const DaemonParts& parts)
    : config_(config),
      parts_(parts),
      runtime_{parts.client, parts.clock, parts.random, parts.log},
      own_(runtime_, config.node_name, [this](std::shared_ptr<const api::NodeCache> node_cache) {
        Take(std::move(node_cache));
      }) {}

absl::Status Daemon::Run(std::stop_token stop) {
  CW_RETURN_IF_ERROR(parts_.registry.status());
  CW_ASSIGN_OR_RETURN(const std::unique_ptr<http::Server> server, Serve());
  port_ = server->port();
  parts_.log.Info("agent started", {{"node", config_.node_name},
                                    {"root", config_.root},
                                    {"store", config_.store.url},
                                    {"version", parts_.version},
                                    {"port", static_cast<int64_t>(server->port())}});
  if (const auto node = AwaitFacts(stop); node.has_value()) {
    WithNode(*node, stop);
  }
  server->Stop();
  parts_.log.Info("agent stopped");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<http::Server>> Daemon::Serve() {
  const auto metrics = [this](const http::ServerRequest&) {
    return http::ServerResponse{.content_type = std::string(metrics::kContentType),
                                .body = parts_.registry.Serialize()};
  };
  const auto healthy = [this](const http::ServerRequest&) {
    const absl::Status health = Health();
    return health.ok() ? http::ServerResponse{.body = "ok\n"}
                       : http::ServerResponse{.status = 503, .body = Message(health) + "\n"};
  };
  const auto ready = [this](const http::ServerRequest&) {
    return IsReady() ? http::ServerResponse{.body = "ok\n"}
                     : http::ServerResponse{.status = 503,
                                            .body = "root or API server not reached yet\n"};
  };
  return http::StartServer({.address = config_.listen_address, .port = config_.listen_port},
                           {{"/metrics", metrics}, {"/healthz", healthy}, {"/readyz", ready}});
}

std::optional<fingerprint::NodeFacts> Daemon::AwaitFacts(std::stop_token stop) {
  std::string said;
  while (!stop.stop_requested()) {
    absl::StatusOr<fingerprint::NodeFacts> facts = parts_.probe();
    if (facts.ok()) {
      parts_.log.Info("node probed", {{"gpuType", facts->gpu_type},
                                      {"cpuClass", facts->cpu_class},
                                      {"devices", facts->device_count},
                                      {"driver", facts->driver_version}});
      return *std::move(facts);
    }
    if (Message(facts.status()) != said) {
      said = Message(facts.status());
      parts_.log.Error("node facts not known", {{"message", said}});
    }
    SleepFor(parts_.clock, kAskAgain, stop);
  }
  return std::nullopt;
}

void Daemon::WithNode(const fingerprint::NodeFacts& node, std::stop_token stop) {
  StatusWriter writer(runtime_, {.node_name = config_.node_name});
  // Both end with `stop` itself, not one after the other.
  const std::jthread writing([&] { writer.Run(stop); });
  if (const std::optional<LockedRoot> root = AwaitRoot(node, writer, stop); root.has_value()) {
    Work(root->dir, node, writer, stop);
  }
  if (watching_.joinable()) {
    watching_.join();
  }
}

absl::StatusOr<Daemon::LockedRoot> Daemon::TakeRoot(const fingerprint::NodeFacts& node,
                                                    std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(fs::Dir root, OpenRoot(config_.root));
  const auto lock = [&](Duration patience) {
    return LockRoot(root, {.clock = parts_.clock, .patience = patience, .stop = stop});
  };
  absl::StatusOr<fs::Fd> held = lock(Duration(0));
  if (absl::IsDeadlineExceeded(held.status())) {
    parts_.log.Info("waits for another agent of this node to end");
    held = lock(kLockMost);
  }
  CW_RETURN_IF_ERROR(held.status());
  CW_RETURN_IF_ERROR(Recover(root, node, parts_.clock.Now(), parts_.log));
  return LockedRoot{.dir = std::move(root), .lock = *std::move(held)};
}

std::optional<Daemon::LockedRoot> Daemon::AwaitRoot(const fingerprint::NodeFacts& node,
                                                    StatusWriter& writer, std::stop_token stop) {
  std::string said;
  while (true) {
    absl::StatusOr<LockedRoot> root = TakeRoot(node, stop);
    if (root.ok()) {
      return *std::move(root);
    }
    if (stop.stop_requested()) {
      return std::nullopt;
    }
    if (Message(root.status()) != said) {
      said = Message(root.status());
      parts_.log.Error("root directory not usable", {{"message", said}});
    }
    // The watch tells which object to report to.
    StartWatch(stop);
    ReportUnusable(node, said, writer);
    SleepFor(parts_.clock, kAskAgain, stop);
  }
}

void Daemon::ReportUnusable(const fingerprint::NodeFacts& node, const std::string& why,
                            StatusWriter& writer) {
  api::NodeCacheStatus status;
  status.node = NodeStatusOf(node, parts_.version);
  status.node.root = {.path = config_.root, .limit_bytes = config_.byte_limit, .message = why};
  std::string target;
  {
    std::lock_guard lock(mutex_);
    target = latest_ == nullptr ? std::string() : latest_->uid;
  }
  writer.Set(target, std::move(status));
}

void Daemon::Work(const fs::Dir& root, const fingerprint::NodeFacts& node, StatusWriter& writer,
                  std::stop_token stop) {
  const std::unique_ptr<Watcher> watcher = MakeWatcher(parts_.clock, parts_.log);
  Workers workers(config_.workers, kJobsMax);
  Loop* turning = nullptr;
  const Context context{.root = root,
                        .store = parts_.store,
                        .watcher = *watcher,
                        .workers = workers,
                        .clock = parts_.clock,
                        .random = parts_.random,
                        .log = parts_.log,
                        .metrics = parts_.metrics,
                        .node = node,
                        .transfer_threads = config_.transfer_threads,
                        .keys = config_.keys,
                        .limits = config_.limits,
                        .wake = [&turning] { turning->Wake(); }};
  Loop loop(context,
            {.limit_bytes = config_.byte_limit,
             .version = parts_.version,
             .scrub = Duration(config_.scrub_seconds * 1000)},
            [&](const std::string& target, api::NodeCacheStatus status) {
              is_ready_ = own_.HasSynced() && status.node.root.writable;
              writer.Set(target, std::move(status));
            });
  turning = &loop;
  // Without a wish yet: repairs what pods mount, before anything that could take long.
  loop.Turn();
  {
    std::lock_guard lock(mutex_);
    loop_ = &loop;
    loop.Desired(latest_);
  }
  StartWatch(stop);
  loop.Run(stop);
  std::lock_guard lock(mutex_);
  loop_ = nullptr;
}

void Daemon::StartWatch(std::stop_token stop) {
  if (!watching_.joinable()) {
    watching_ = std::jthread([this, stop] { own_.Run(stop); });
  }
}

void Daemon::Take(std::shared_ptr<const api::NodeCache> node_cache) {
  std::lock_guard lock(mutex_);
  latest_ = std::move(node_cache);
  if (loop_ != nullptr) {
    loop_->Desired(latest_);
  }
}

absl::Status Daemon::Health() const {
  std::lock_guard lock(mutex_);
  if (loop_ == nullptr) {
    return absl::OkStatus();
  }
  if (parts_.clock.Monotonic() - loop_->last_turn() >= kTurnMost) {
    return absl::UnavailableError("the sync loop does not turn");
  }
  return loop_->is_root_gone() ? absl::UnavailableError("the root directory was removed")
                               : absl::OkStatus();
}

}  // namespace cachewarm::agent

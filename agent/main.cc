// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <future>
#include <iostream>

#include "agent/daemon.h"
#include "agent/probe/node_probe.h"
#include "lib/base/json_log.h"
#include "lib/base/status.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/gpu/probe.h"
#include "lib/kube/client/config.h"
#include "lib/kube/client/http_client.h"

namespace cachewarm::agent {
namespace {

constexpr auto kStopWithin = std::chrono::milliseconds(1800);
constexpr size_t kConfigBytesMax = 1U << 20U;

std::optional<std::string> Environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::NotFoundError(path + ": cannot be read; see --config");
  }
  std::string text(kConfigBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kConfigBytesMax) {
    return absl::InvalidArgumentError(path + ": holds more than 1 MiB");
  }
  return text;
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// The signals that end us, blocked in every thread and taken by AwaitEnd() alone.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  // A file size limit is then an error of write(2), like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  return signals;
}

absl::StatusOr<fingerprint::NodeFacts> Probe(const Config& config) {
  NodeProbeOptions options{.facts_file = config.node_facts};
  if (!config.node_facts_must_exist && ::access(config.node_facts.c_str(), F_OK) != 0) {
    options.facts_file.clear();
  }
  return ProbeNode(options, *gpu::MakeCudaProbe());
}

int PrintNodeFacts(const Config& config) {
  const absl::StatusOr<fingerprint::NodeFacts> facts = Probe(config);
  if (!facts.ok()) {
    std::cerr << "cachewarm-agent: " << Message(facts.status()) << '\n';
    return EXIT_FAILURE;
  }
  std::cout << fingerprint::NodeFactsToJson(*facts).dump(2) << '\n';
  return EXIT_SUCCESS;
}

// Everything that reaches outside, in the order in which it must be made.
struct Outside {
  std::unique_ptr<http::Client> http;
  std::unique_ptr<kube::Client> kube;
  std::unique_ptr<bundle::Store> store;
};

absl::StatusOr<Outside> Connect(const Config& config, Metrics& metrics) {
  Outside outside;
  CW_ASSIGN_OR_RETURN(
      kube::ClusterConfig cluster,
      kube::FindConfig(config.kubeconfig,
                       {.service_host = Environment("KUBERNETES_SERVICE_HOST").value_or(""),
                        .service_port = Environment("KUBERNETES_SERVICE_PORT").value_or("")}));
  CW_ASSIGN_OR_RETURN(outside.http, http::MakeClient({.tls = cluster.tls}));
  outside.kube = kube::MakeHttpClient(
      *outside.http, SystemClock(), SystemRandom(),
      {.config = std::move(cluster), .on_request = [&metrics](const kube::RequestReport& report) {
         metrics.api_requests.Add({report.verb, report.resource, std::to_string(report.http_code)});
       }});
  CW_ASSIGN_OR_RETURN(outside.store, bundle::OpenStore(config.store, SystemClock()));
  return outside;
}

// Blocks until a signal or the end of `daemon`; after a signal the daemon gets kStopWithin.
absl::Status AwaitEnd(std::future<absl::Status>& daemon, std::stop_source& stop,
                      const sigset_t& signals, Log& log) {
  const timespec quarter{.tv_sec = 0, .tv_nsec = 250'000'000};
  while (daemon.wait_for(std::chrono::milliseconds(0)) != std::future_status::ready) {
    if (sigtimedwait(&signals, nullptr, &quarter) > 0) {
      log.Info("stopping");
      stop.request_stop();
      if (daemon.wait_for(kStopWithin) != std::future_status::ready) {
        log.Warning("not stopped in time");
        std::_Exit(EXIT_SUCCESS);  // every step may be killed at any instruction
      }
    }
  }
  return daemon.get();
}

int RunDaemon(const Config& config, const sigset_t& signals) {
  const std::unique_ptr<Log> log = MakeJsonLog(config.log_level, SystemClock());
  const std::unique_ptr<metrics::Registry> registry = metrics::MakeRegistry();
  Metrics metrics(*registry, CACHEWARM_VERSION);
  absl::StatusOr<Outside> outside = Connect(config, metrics);
  if (!outside.ok()) {
    log->Error("cannot start", {{"message", Message(outside.status())}});
    return EXIT_FAILURE;
  }
  Daemon daemon(config, {.client = *outside->kube,
                         .store = *outside->store,
                         .clock = SystemClock(),
                         .random = SystemRandom(),
                         .log = *log,
                         .registry = *registry,
                         .metrics = metrics,
                         .probe = [&config] { return Probe(config); },
                         .version = CACHEWARM_VERSION});
  std::stop_source stop;
  std::future<absl::Status> running =
      std::async(std::launch::async, [&] { return daemon.Run(stop.get_token()); });
  const absl::Status ended = AwaitEnd(running, stop, signals, *log);
  if (!ended.ok()) {
    log->Error("agent ended", {{"message", Message(ended)}});
  }
  return ended.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

int Main(int argc, char** argv) {
  const sigset_t signals = BlockSignals();
  http::PrepareProcess();
  const absl::StatusOr<CommandLine> command =
      ParseConfig({.arguments = std::vector<std::string>(argv + 1, argv + argc),
                   .environment = &Environment,
                   .read_file = &ReadFile,
                   .host_name = HostName(),
                   .version = CACHEWARM_VERSION});
  if (!command.ok()) {
    std::cerr << "cachewarm-agent: " << Message(command.status()) << '\n';
    return 2;
  }
  if (command->print.has_value()) {
    std::cout << *command->print;
    return EXIT_SUCCESS;
  }
  return command->print_node_facts ? PrintNodeFacts(command->config)
                                   : RunDaemon(command->config, signals);
}

}  // namespace
}  // namespace cachewarm::agent

int main(int argc, char** argv) {
  return cachewarm::agent::Main(argc, argv);
}

// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "agent/daemon.h"
#include "lib/base/json_log.h"
#include "lib/base/status.h"
#include "lib/bundle/signature/keys.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/gpu/probe.h"
#include "lib/kube/client/http_client.h"
#include "lib/kube/kubeconfig/selection.h"
#include "lib/probe/boot_id.h"
#include "lib/probe/driver_state.h"
#include "lib/probe/isolated_probe.h"
#include "lib/probe/node_probe.h"
#include "lib/process/process.h"

namespace cachewarm::agent {
namespace {

// The driver of a GPU without persistence mode may take 10 seconds to start.
constexpr std::chrono::seconds kProbeDeadline(30);

probe::NodeProbeOptions ProbeOptions(const Config& config) {
  probe::NodeProbeOptions options{.facts_file = config.node_facts, .describes_node = true};
  if (!config.node_facts_must_exist && ::access(config.node_facts.c_str(), F_OK) != 0) {
    options.facts_file.clear();
  }
  return options;
}

absl::StatusOr<fingerprint::NodeFacts> Probe(const Config& config) {
  return probe::ProbeNode(ProbeOptions(config), *gpu::MakeProbe(config.driver_roots));
}

NodeProbes MakeProbes(const Config& config) {
  const auto isolated =
      std::make_shared<probe::IsolatedProbe>([&config] { return Probe(config); }, kProbeDeadline);
  return {.all = [isolated](std::stop_token stop) { return isolated->Run(std::move(stop)); },
          .without_gpu = [&config] { return probe::ProbeNodeWithoutGpu(ProbeOptions(config)); },
          .driver_state =
              [&config] {
                return probe::DriverState(
                    "",
                    gpu::DriverLibraryPaths(std::string(gpu::kNvmlLibrary), config.driver_roots));
              }};
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

// Checks at startup that every key file can be read; otherwise no bundle could be fetched or
// published. The files may change later, because each use reads them again.
absl::Status CheckKeys(const bundle::KeyFiles& keys) {
  if (!keys.public_key_file.empty()) {
    CW_RETURN_IF_ERROR(
        Annotate(bundle::ReadPublicKeys(keys.public_key_file).status(), "signature.publicKeyFile"));
  }
  if (!keys.private_key_file.empty()) {
    CW_RETURN_IF_ERROR(Annotate(bundle::ReadPrivateKey(keys.private_key_file).status(),
                                "signature.privateKeyFile"));
  }
  return absl::OkStatus();
}

// Clients of other systems, in construction order: `kube` uses `http`.
struct Clients {
  std::unique_ptr<http::Client> http;
  std::unique_ptr<kube::Client> kube;
  std::unique_ptr<bundle::Store> store;
};

absl::StatusOr<Clients> Connect(const Config& config, Metrics& metrics) {
  Clients clients;
  CW_ASSIGN_OR_RETURN(
      kube::ClusterConfig cluster,
      kube::FindConfig(
          config.kubeconfig,
          {.service_host = process::Environment("KUBERNETES_SERVICE_HOST").value_or(""),
           .service_port = process::Environment("KUBERNETES_SERVICE_PORT").value_or("")}));
  CW_ASSIGN_OR_RETURN(clients.http,
                      http::MakeClient({.tls = cluster.tls, .proxy = {.always = cluster.proxy}}));
  clients.kube = kube::MakeHttpClient(
      *clients.http, SystemClock(), SystemRandom(),
      {.config = std::move(cluster), .on_request = [&metrics](const kube::RequestReport& report) {
         metrics.api_requests.Add({report.verb, report.resource, std::to_string(report.http_code)});
       }});
  CW_ASSIGN_OR_RETURN(auto store, bundle::OpenStore(config.store, SystemClock()));
  clients.store = std::make_unique<bundle::MeteredStore>(
      std::move(store), SystemClock(),
      [&metrics](const bundle::StoreCall& call) { CountStoreCall(metrics, call); });
  CW_RETURN_IF_ERROR(CheckKeys(config.keys));
  return clients;
}

int RunDaemon(const Config& config, const sigset_t& signals) {
  const std::unique_ptr<Log> log = MakeJsonLog(config.log_level, SystemClock());
  const std::unique_ptr<metrics::Registry> registry = metrics::MakeRegistry();
  Metrics metrics(*registry, CACHEWARM_VERSION);
  absl::StatusOr<Clients> clients = Connect(config, metrics);
  if (!clients.ok()) {
    log->Error("cannot start", {{"err", Message(clients.status())}});
    return EXIT_FAILURE;
  }
  Daemon daemon(config, {.client = *clients->kube,
                         .store = *clients->store,
                         .clock = SystemClock(),
                         .random = SystemRandom(),
                         .log = *log,
                         .registry = *registry,
                         .metrics = metrics,
                         .probes = MakeProbes(config),
                         .version = CACHEWARM_VERSION,
                         .boot_id = probe::BootId("/proc")});
  const absl::Status ended = process::RunUntilSignal(
      signals, *log, [&daemon](std::stop_token stop) { return daemon.Run(stop); });
  if (!ended.ok()) {
    log->Error("agent failed", {{"err", Message(ended)}});
  }
  return ended.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

int Main(int argc, char** argv) {
  const sigset_t signals = process::BlockSignals();
  http::PrepareProcess();
  const absl::StatusOr<CommandLine> command =
      ParseConfig(process::SettingSources(argc, argv, CACHEWARM_VERSION));
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

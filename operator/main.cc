// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>

#include "lib/base/json_log.h"
#include "lib/base/status.h"
#include "lib/process/process.h"
#include "operator/daemon.h"

namespace cachewarm::op {
namespace {

int Main(int argc, char** argv) {
  const sigset_t signals = process::BlockSignals();
  http::PrepareProcess();
  const absl::StatusOr<CommandLine> command =
      ParseConfig(process::SettingSources(argc, argv, CACHEWARM_VERSION));
  if (!command.ok()) {
    std::cerr << "cachewarm-operator: " << Message(command.status()) << '\n';
    return 2;
  }
  if (command->print.has_value()) {
    std::cout << *command->print;
    return EXIT_SUCCESS;
  }
  const Config& config = command->config;
  const std::unique_ptr<Log> log = MakeJsonLog(config.log_level, SystemClock());
  const std::unique_ptr<metrics::Registry> registry = metrics::MakeRegistry();
  const Metrics metrics = MakeMetrics(*registry, CACHEWARM_VERSION);
  std::unique_ptr<http::Client> http;
  const auto client = ConnectToCluster(config, SystemClock(), SystemRandom(), metrics, http);
  if (!client.ok()) {
    log->Error("cannot configure the API server client", {{"err", Message(client.status())}});
    return EXIT_FAILURE;
  }
  Daemon daemon(config, {.client = **client,
                         .clock = SystemClock(),
                         .random = SystemRandom(),
                         .log = *log,
                         .registry = *registry,
                         .metrics = metrics});
  const absl::Status ended = process::RunUntilSignal(
      signals, *log, [&daemon](std::stop_token stop) { return daemon.Run(stop); },
      [&daemon] { return daemon.StopLimit(); });
  if (!ended.ok()) {
    log->Error("operator failed", {{"err", Message(ended)}});
  }
  return ended.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace cachewarm::op

int main(int argc, char** argv) {
  return cachewarm::op::Main(argc, argv);
}

// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <future>
#include <iostream>
#include <iterator>

#include "lib/base/json_log.h"
#include "lib/base/status.h"
#include "operator/daemon.h"

namespace cachewarm::op {
namespace {

constexpr auto kStopWithin = std::chrono::milliseconds(1800);
constexpr size_t kConfigBytesMax = 1U << 20U;

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

absl::StatusOr<CommandLine> ReadCommandLine(int argc, char** argv) {
  return ParseConfig({.arguments = std::vector<std::string>(argv + 1, argv + argc),
                      .environment = [](const std::string& name) -> std::optional<std::string> {
                        const char* value = std::getenv(name.c_str());
                        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
                      },
                      .read_file = &ReadFile,
                      .host_name = HostName(),
                      .version = CACHEWARM_VERSION});
}

// The signals that end us, blocked in every thread and taken by AwaitEnd() alone.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// Blocks until a signal or the end of `daemon`; after a signal the daemon gets kStopWithin.
absl::Status AwaitEnd(std::future<absl::Status>& daemon, std::stop_source& stop,
                      const sigset_t& signals, Log& log) {
  using std::chrono::milliseconds;
  const timespec quarter{.tv_sec = 0, .tv_nsec = 250'000'000};
  while (daemon.wait_for(milliseconds(0)) != std::future_status::ready) {
    if (sigtimedwait(&signals, nullptr, &quarter) > 0) {
      log.Info("stopping");
      stop.request_stop();
      if (daemon.wait_for(kStopWithin) != std::future_status::ready) {
        log.Warning("not stopped in time");
        std::_Exit(EXIT_SUCCESS);
      }
    }
  }
  return daemon.get();
}

int Main(int argc, char** argv) {
  const sigset_t signals = BlockSignals();
  http::PrepareProcess();
  const absl::StatusOr<CommandLine> command = ReadCommandLine(argc, argv);
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
    log->Error("cannot reach a cluster", {{"error", Message(client.status())}});
    return EXIT_FAILURE;
  }
  Daemon daemon(config, {.client = **client,
                         .clock = SystemClock(),
                         .random = SystemRandom(),
                         .log = *log,
                         .registry = *registry,
                         .metrics = metrics});
  std::stop_source stop;
  std::future<absl::Status> running =
      std::async(std::launch::async, [&] { return daemon.Run(stop.get_token()); });
  const absl::Status ended = AwaitEnd(running, stop, signals, *log);
  if (!ended.ok()) {
    log->Error("operator ended", {{"error", Message(ended)}});
  }
  return ended.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace cachewarm::op

int main(int argc, char** argv) {
  return cachewarm::op::Main(argc, argv);
}

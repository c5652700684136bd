// SPDX-License-Identifier: Apache-2.0
#include "lib/process/process.h"

#include <linux/ioprio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <future>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/file.h"

namespace cachewarm::process {
namespace {

constexpr timespec kLook{.tv_sec = 0, .tv_nsec = 250'000'000};
constexpr int64_t kConfigBytesMax = 1 << 20;
constexpr int kNiceMost = 19;

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

absl::StatusOr<std::string> ReadConfigFile(const std::string& path) {
  absl::StatusOr<std::string> text = fs::ReadNamedFile(path, kConfigBytesMax);
  if (absl::IsOutOfRange(text.status())) {
    return absl::InvalidArgumentError(fmt::format("--config: {}", Message(text.status())));
  }
  return text.ok() ? text : Annotate(text.status(), "--config");
}

}  // namespace

sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return signals;
}

void LowerThreadPriority() {
  // On Linux both calls affect one thread; 0 means the calling thread.
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, kNiceMost));
  static_cast<void>(
      ::syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0)));
}

std::optional<std::string> Environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

settings::Sources SettingSources(int argc, char** argv, const std::string& version) {
  return {.arguments = std::vector<std::string>(argv + 1, argv + argc),
          .environment = &Environment,
          .read_file = &ReadConfigFile,
          .host_name = HostName(),
          .version = version};
}

absl::Status RunUntilSignal(const sigset_t& signals, Log& log,
                            const std::function<absl::Status(std::stop_token)>& work,
                            const StopLimit& limit) {
  std::stop_source stop;
  std::future<absl::Status> running =
      std::async(std::launch::async, [&] { return work(stop.get_token()); });
  while (running.wait_for(std::chrono::milliseconds(0)) != std::future_status::ready) {
    if (sigtimedwait(&signals, nullptr, &kLook) > 0) {
      log.Info("stopping");
      stop.request_stop();
      if (running.wait_for(limit()) != std::future_status::ready) {
        log.Warning("not stopped in time");
        std::_Exit(EXIT_SUCCESS);
      }
    }
  }
  return running.get();
}

}  // namespace cachewarm::process

// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/kubeconfig/plugin_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/error.h"
#include "lib/fs/fd.h"

namespace cachewarm::kube {
namespace {

constexpr size_t kOutputBytesMax = 1U << 20U;
constexpr size_t kErrorBytesMax = 1U << 20U;  // further error output is discarded
constexpr size_t kHintBytesMax = 2048;
// Reads per pipe before the deadline is checked again; more bytes than a pipe can hold (1 MiB).
constexpr int kReadsPerPump = 128;
constexpr int kTickMs = 20;
constexpr Duration kTermGrace{500};

bool IsExecutable(const std::string& path) {
  struct ::stat file {};
  return ::stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

// Returns the path of the program, looked up in PATH if `command` has no slash. As in Go, which
// runs the plugins of kubectl, the working directory is never searched.
absl::StatusOr<std::string> FindProgram(const std::string& command, const std::string& search) {
  if (command.find('/') != std::string::npos) {
    if (IsExecutable(command)) {
      return command;
    }
    return absl::FailedPreconditionError("no such executable file");
  }
  for (size_t at = 0; at < search.size();) {
    const size_t end = std::min(search.find(':', at), search.size());
    const std::string path = search.substr(at, end - at) + "/" + command;
    if (path.front() == '/' && end > at && IsExecutable(path)) {
      return path;
    }
    at = end + 1;
  }
  return absl::FailedPreconditionError("not found in PATH");
}

struct Pipe {
  fs::Fd read;
  fs::Fd write;
};
absl::StatusOr<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fs::ErrnoStatus(errno, "pipe");
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // NOLINT(cppcoreguidelines-pro-type-vararg)
  return Pipe{.read = fs::Fd(ends[0]), .write = fs::Fd(ends[1])};
}

std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Attributes of the new process: default signal handling where this process has changed it, and its
// own process group unless it shares the terminal.
class SpawnSettings {
 public:
  SpawnSettings(int input, int output, int error, bool own_group) {
    ::posix_spawn_file_actions_init(&files_);
    if (input >= 0) {
      ::posix_spawn_file_actions_adddup2(&files_, input, STDIN_FILENO);
    } else {
      ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    ::posix_spawn_file_actions_adddup2(&files_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&files_, error, STDERR_FILENO);
    // The sockets of the HTTP library have no close-on-exec flag.
    ::posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1);
    ::posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes_, &signals);
    sigaddset(&signals, SIGPIPE);
    sigaddset(&signals, SIGXFSZ);
    ::posix_spawnattr_setsigdefault(&attributes_, &signals);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(&attributes_,
                               static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                  (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

// A started plugin. The destructor kills it if it still runs.
class PluginProcess {
 public:
  static absl::StatusOr<std::unique_ptr<PluginProcess>> Start(const ExecPlugin& plugin,
                                                              const PluginContext& context,
                                                              bool is_interactive);
  PluginProcess(const PluginProcess&) = delete;
  PluginProcess& operator=(const PluginProcess&) = delete;
  ~PluginProcess() { End(); }

  // Reads what has arrived; waits up to `wait_ms` for the first bytes. Returns false if more than
  // kOutputBytesMax bytes of output arrived.
  bool Pump(const PluginContext& context, int wait_ms);
  // Returns the wait status once the process has ended.
  std::optional<int> Ended();

  std::string& output() { return output_; }

 private:
  PluginProcess(pid_t process, bool has_group, fs::Fd output, fs::Fd error)
      : process_(process),
        has_group_(has_group),
        output_pipe_(std::move(output)),
        error_pipe_(std::move(error)) {}

  void Signal(int number) const { ::kill(has_group_ ? -process_ : process_, number); }
  // Ends the process: by SIGTERM, and by SIGKILL after kTermGrace.
  void End();
  // Passes the bytes that have arrived to `take`; closes the pipe at its end.
  template <typename Take>
  static void Drain(fs::Fd& pipe, const Take& take);

  const pid_t process_;
  const bool has_group_;
  fs::Fd output_pipe_;
  fs::Fd error_pipe_;
  std::string output_;
  size_t error_bytes_ = 0;
  std::optional<int> ended_;
};

absl::StatusOr<std::unique_ptr<PluginProcess>> PluginProcess::Start(const ExecPlugin& plugin,
                                                                    const PluginContext& context,
                                                                    bool is_interactive) {
  std::map<std::string, std::string> variables = context.environment;
  const auto search = variables.find("PATH");
  CW_ASSIGN_OR_RETURN(const std::string program,
                      FindProgram(plugin.command, search == variables.end() ? "" : search->second));
  for (const auto& [name, value] : plugin.environment) {
    variables[name] = value;
  }
  variables["KUBERNETES_EXEC_INFO"] = ExecInfo(plugin, is_interactive);
  std::vector<std::string> words = {plugin.command};
  words.insert(words.end(), plugin.arguments.begin(), plugin.arguments.end());
  std::vector<std::string> assignments;
  assignments.reserve(variables.size());
  for (const auto& [name, value] : variables) {
    assignments.push_back(fmt::format("{}={}", name, value));
  }
  CW_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  CW_ASSIGN_OR_RETURN(Pipe error, MakePipe());
  const SpawnSettings settings(is_interactive ? context.terminal : -1, output.write.get(),
                               error.write.get(), !is_interactive);
  pid_t process = -1;
  const int failed =
      ::posix_spawn(&process, program.c_str(), settings.files(), settings.attributes(),
                    PointersTo(words).data(), PointersTo(assignments).data());
  if (failed != 0) {
    return absl::FailedPreconditionError(Message(fs::ErrnoStatus(failed, program)));
  }
  return std::unique_ptr<PluginProcess>(
      new PluginProcess(process, !is_interactive, std::move(output.read), std::move(error.read)));
}

template <typename Take>
void PluginProcess::Drain(fs::Fd& pipe, const Take& take) {
  std::array<char, 16384> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (int reads = 0; pipe.ok() && reads < kReadsPerPump; ++reads) {
    const ssize_t count = ::read(pipe.get(), buffer.data(), buffer.size());
    if (count > 0) {
      take(std::string_view(buffer.data(), static_cast<size_t>(count)));
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      pipe = fs::Fd();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

bool PluginProcess::Pump(const PluginContext& context, int wait_ms) {
  std::array<pollfd, 2> pipes = {{{.fd = output_pipe_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = error_pipe_.get(), .events = POLLIN, .revents = 0}}};
  const bool are_closed = !output_pipe_.ok() && !error_pipe_.ok();  // the exit follows soon
  // A closed pipe is -1, which poll(2) ignores.
  ::poll(pipes.data(), pipes.size(), are_closed ? std::min(wait_ms, 1) : wait_ms);
  Drain(error_pipe_, [&](std::string_view bytes) {
    bytes = bytes.substr(0, kErrorBytesMax - std::min(error_bytes_, kErrorBytesMax));
    error_bytes_ += bytes.size();
    if (context.on_stderr && !bytes.empty()) {
      context.on_stderr(bytes);
    }
  });
  Drain(output_pipe_, [&](std::string_view bytes) {
    output_ += bytes.substr(0, kOutputBytesMax + 1 - std::min(output_.size(), kOutputBytesMax + 1));
  });
  return output_.size() <= kOutputBytesMax;
}

std::optional<int> PluginProcess::Ended() {
  int status = 0;
  if (!ended_.has_value() && ::waitpid(process_, &status, WNOHANG) == process_) {
    ended_ = status;
  }
  return ended_;
}

void PluginProcess::End() {
  if (Ended().has_value()) {
    return;
  }
  Signal(SIGTERM);
  // WNOWAIT: the id of the group stays valid for the second signal, which ends members that ignore
  // SIGTERM.
  for (Duration waited{0}; waited < kTermGrace; waited += Duration(kTickMs)) {
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        ended.si_pid == process_) {
      break;
    }
    ::poll(nullptr, 0, kTickMs);
  }
  Signal(SIGKILL);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  ended_ = status;
}

absl::Status ResultOf(int status) {
  if (WIFSIGNALED(status)) {
    return absl::FailedPreconditionError(
        fmt::format("signal {} killed the program", WTERMSIG(status)));
  }
  if (const int code = WEXITSTATUS(status); code != 0) {
    return absl::FailedPreconditionError(fmt::format("the program failed with exit code {}", code));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> RunAndRead(const ExecPlugin& plugin, const PluginContext& context,
                                       const Clock& clock, const std::stop_token& stop) {
  const bool has_terminal = context.terminal >= 0;
  if (plugin.input == ExecPlugin::Input::kAlways && !has_terminal) {
    return absl::FailedPreconditionError(
        "the program needs a terminal (interactiveMode: Always), and standard input is none; run "
        "cachewarm in a terminal");
  }
  const bool is_interactive = has_terminal && plugin.input != ExecPlugin::Input::kNever;
  const Duration limit = is_interactive ? context.deadline_at_terminal : context.deadline;
  CW_ASSIGN_OR_RETURN(const auto process, PluginProcess::Start(plugin, context, is_interactive));
  const MonoTime deadline = clock.Monotonic() + limit;
  while (true) {
    // The exit is read first: everything that the plugin wrote has arrived then. The pipes may stay
    // open for longer, in processes that the plugin started.
    const std::optional<int> ended = process->Ended();
    if (!process->Pump(context, ended.has_value() ? 0 : kTickMs)) {
      return absl::FailedPreconditionError(
          fmt::format("the program printed more than {} bytes", kOutputBytesMax));
    }
    if (ended.has_value()) {
      CW_RETURN_IF_ERROR(ResultOf(*ended));
      return std::move(process->output());
    }
    if (stop.stop_requested()) {
      return absl::CancelledError("stopped");
    }
    if (clock.Monotonic() >= deadline) {
      return absl::DeadlineExceededError(
          fmt::format("the program did not end within {}", FormatDuration(limit)));
    }
  }
}

}  // namespace

absl::Status PluginError(const ExecPlugin& plugin, const absl::Status& status) {
  if (status.ok() || absl::IsCancelled(status)) {
    return status;
  }
  const std::string hint = plugin.install_hint.substr(0, kHintBytesMax);
  return absl::FailedPreconditionError(fmt::format("credential plugin {} of user \"{}\": {}{}{}",
                                                   plugin.command, plugin.user, Message(status),
                                                   hint.empty() ? "" : "\n", hint));
}

absl::StatusOr<std::string> RunPlugin(const ExecPlugin& plugin, const PluginContext& context,
                                      const Clock& clock, std::stop_token stop) {
  absl::StatusOr<std::string> output = RunAndRead(plugin, context, clock, stop);
  if (!output.ok()) {
    return PluginError(plugin, output.status());
  }
  return output;
}

}  // namespace cachewarm::kube

// SPDX-License-Identifier: Apache-2.0
#include "lib/probe/isolated_probe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"

namespace cachewarm::probe {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kAnswerMax = 256U << 10U;
constexpr milliseconds kPoll{50};
// Time that a killed child may take to end.
constexpr milliseconds kKillWait{1000};
// The first byte of the child's answer says whether facts or an error follow.
constexpr char kFacts = 'F';
constexpr char kError = 'E';

// Writes the answer to the pipe. Runs in the child.
void Answer(int pipe, const absl::StatusOr<fingerprint::NodeFacts>& result) {
  const std::string text =
      result.ok() ? kFacts + fingerprint::NodeFactsToJson(*result).dump()
                  : fmt::format("{}{} {}", kError, static_cast<int>(result.status().code()),
                                Message(result.status()));
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(pipe, text.data() + done, text.size() - done);
    if (count <= 0 && errno != EINTR) {
      return;
    }
    done += count > 0 ? static_cast<size_t>(count) : 0;
  }
}

[[noreturn]] void RunChild(int pipe, const IsolatedProbe::Query& query) {
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  constexpr int kPipe = 3;
  if (pipe != kPipe) {
    ::dup2(pipe, kPipe);
  }
  ::close_range(kPipe + 1, ~0U, 0);
  Answer(kPipe, query());
  ::_exit(0);
}

absl::StatusOr<fingerprint::NodeFacts> ParseAnswer(const std::string& answer) {
  if (answer.front() == kFacts) {
    return fingerprint::ParseNodeFacts(std::string_view(answer).substr(1));
  }
  const size_t space = answer.find(' ');
  int code = 0;
  for (size_t i = 1; i < space && i < 4 && i < answer.size(); ++i) {
    code = code * 10 + (answer[i] - '0');
  }
  const bool is_known = code > 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return absl::Status(is_known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kInternal,
                      space == std::string::npos ? answer : answer.substr(space + 1));
}

// Reads from the pipe until its end. DEADLINE_EXCEEDED at `deadline`, CANCELLED on `stop`.
absl::StatusOr<std::string> ReadAnswer(int pipe, steady_clock::time_point deadline,
                                       const std::stop_token& stop) {
  std::string answer;
  std::array<char, 8192> block{};
  while (answer.size() <= kAnswerMax) {
    if (stop.stop_requested()) {
      return absl::CancelledError("stopped");
    }
    if (steady_clock::now() >= deadline) {
      return absl::DeadlineExceededError("deadline");
    }
    pollfd poll{.fd = pipe, .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, static_cast<int>(kPoll.count())) <= 0) {
      continue;
    }
    const ssize_t count = ::read(pipe, block.data(), block.size());
    if (count == 0) {
      return answer;
    }
    if (count > 0) {
      answer.append(block.data(), static_cast<size_t>(count));
    }
  }
  return absl::InternalError(fmt::format("the answer exceeds {} bytes", kAnswerMax));
}

}  // namespace

IsolatedProbe::IsolatedProbe(Query query, milliseconds deadline)
    : query_(std::move(query)), deadline_(deadline) {}

IsolatedProbe::~IsolatedProbe() {
  Kill();
}

bool IsolatedProbe::Reap() {
  if (child_ > 0 && ::waitpid(child_, &child_status_, WNOHANG) != 0) {
    child_ = -1;
  }
  return child_ < 0;
}

void IsolatedProbe::Kill() {
  if (Reap()) {
    return;
  }
  ::kill(child_, SIGKILL);
  const auto end = steady_clock::now() + kKillWait;
  while (!Reap() && steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(5));
  }
}

absl::StatusOr<fingerprint::NodeFacts> IsolatedProbe::Run(std::stop_token stop) {
  if (!Reap()) {
    return absl::UnavailableError(fmt::format(
        "an earlier query of the GPU driver still hangs in the kernel (process {})", child_));
  }
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return absl::UnavailableError(
        fmt::format("cannot query the GPU driver: pipe: {}", std::strerror(errno)));
  }
  child_ = ::fork();
  if (child_ == 0) {
    RunChild(pipe[1], query_);
  }
  const int error = errno;
  ::close(pipe[1]);
  if (child_ < 0) {
    ::close(pipe[0]);
    return absl::UnavailableError(
        fmt::format("cannot query the GPU driver: fork: {}", std::strerror(error)));
  }
  const absl::StatusOr<std::string> answer =
      ReadAnswer(pipe[0], steady_clock::now() + deadline_, stop);
  ::close(pipe[0]);
  const bool ended = answer.ok();
  if (!ended) {
    Kill();
    return absl::IsDeadlineExceeded(answer.status())
               ? absl::UnavailableError(
                     fmt::format("the GPU driver did not answer within {} ms", deadline_.count()))
               : answer.status();
  }
  if (!answer->empty()) {
    Kill();
    return ParseAnswer(*answer);
  }
  // The pipe was closed without an answer: the child has crashed or is about to end. Kill() waits
  // for its exit status.
  Kill();
  return absl::UnavailableError(
      WIFSIGNALED(child_status_)
          ? fmt::format("the query of the GPU driver ended with signal {}", WTERMSIG(child_status_))
          : std::string("the query of the GPU driver ended without an answer"));
}

}  // namespace cachewarm::probe

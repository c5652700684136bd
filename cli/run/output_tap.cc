// SPDX-License-Identifier: Apache-2.0
#include "cli/run/output_tap.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/fs/error.h"

namespace cachewarm::cli {
namespace {

constexpr size_t kLineBytesMax = 64U << 10U;
constexpr size_t kPieceBytes = 64U << 10U;
constexpr std::array<int, 2> kTargets = {STDOUT_FILENO, STDERR_FILENO};

// Writes everything; false if the reader is gone.
bool WriteAll(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(to, bytes.data(), bytes.size());
    if (wrote >= 0) {
      bytes.remove_prefix(static_cast<size_t>(wrote));
    } else if (errno == EAGAIN) {
      // Another process made the shared descriptor non-blocking.
      pollfd writable{.fd = to, .events = POLLOUT, .revents = 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<Pattern> Pattern::Parse(const std::string& text) {
  auto compiled = std::make_unique<regex_t>();
  if (const int error = ::regcomp(compiled.get(), text.c_str(), REG_EXTENDED | REG_NOSUB);
      error != 0) {
    std::array<char, 256> reason{};
    ::regerror(error, compiled.get(), reason.data(), reason.size());
    return absl::InvalidArgumentError(fmt::format("\"{}\": {}", text, reason.data()));
  }
  return Pattern(std::shared_ptr<const regex_t>(compiled.release(), [](const regex_t* owned) {
    auto* mutable_owned = const_cast<regex_t*>(owned);  // NOLINT: regfree(3) needs non-const
    ::regfree(mutable_owned);
    delete mutable_owned;  // NOLINT(cppcoreguidelines-owning-memory)
  }));
}

bool Pattern::Matches(const std::string& line) const {
  return ::regexec(compiled_.get(), line.c_str(), 0, nullptr, 0) == 0;
}

bool LineMatcher::Feed(std::string_view bytes) {
  bool matched = false;
  while (!bytes.empty()) {
    const size_t end = bytes.find_first_of("\r\n");
    line_.append(bytes.substr(0, end));
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (end != std::string_view::npos || line_.size() >= kLineBytesMax) {
      matched = Finish() || matched;
    }
  }
  return matched;
}

bool LineMatcher::Finish() {
  const std::string line = std::exchange(line_, {});
  return !line.empty() && pattern_.Matches(line);
}

absl::StatusOr<std::unique_ptr<OutputTap>> OutputTap::Open(const Pattern& pattern,
                                                           std::function<void()> on_match) {
  std::unique_ptr<OutputTap> tap(new OutputTap(pattern, std::move(on_match)));
  for (size_t i = 0; i < 2; ++i) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return fs::ErrnoStatus(errno, "pipe");
    }
    tap->read_ends_[i] = fs::Fd(ends[0]);
    tap->write_ends_[i] = fs::Fd(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  tap->wake_ = fs::Fd(::eventfd(0, EFD_CLOEXEC));
  if (!tap->wake_.ok()) {
    return fs::ErrnoStatus(errno, "eventfd");
  }
  return tap;
}

OutputTap::~OutputTap() {
  Finish();
}

void OutputTap::Start() {
  write_ends_[0] = fs::Fd();
  write_ends_[1] = fs::Fd();
  thread_ = std::thread([this] { Run(); });
}

void OutputTap::Finish() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    static_cast<void>(!::write(wake_.get(), &one, sizeof(one)));
    thread_.join();
  }
}

void OutputTap::Run() {
  bool finishing = false;
  while (read_ends_[0].ok() || read_ends_[1].ok()) {
    std::array<pollfd, 3> fds = {
        {{.fd = read_ends_[0].get(), .events = POLLIN, .revents = 0},
         {.fd = read_ends_[1].get(), .events = POLLIN, .revents = 0},
         {.fd = finishing ? -1 : wake_.get(), .events = POLLIN, .revents = 0}}};
    const int ready = ::poll(fds.data(), fds.size(), finishing ? 0 : -1);
    if (ready == 0) {
      break;  // the child has ended and all its output was read
    }
    finishing = finishing || fds[2].revents != 0;
    for (size_t i = 0; i < 2; ++i) {
      if (ready > 0 && fds.at(i).revents != 0) {
        Move(i);
      }
    }
  }
  Report(matchers_[0].Finish());
  Report(matchers_[1].Finish());
}

void OutputTap::Move(size_t i) {
  std::array<char, kPieceBytes> piece{};
  const ssize_t got = ::read(read_ends_[i].get(), piece.data(), piece.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  const std::string_view bytes(piece.data(), got > 0 ? static_cast<size_t>(got) : 0);
  // If nobody reads the output of this process any more, the child must get SIGPIPE as without
  // cachewarm.
  if (bytes.empty() || !WriteAll(kTargets.at(i), bytes)) {
    read_ends_[i] = fs::Fd();
    return;
  }
  Report(matchers_[i].Feed(bytes));
}

void OutputTap::Report(bool matched) {
  if (matched && on_match_) {
    std::exchange(on_match_, nullptr)();
  }
}

}  // namespace cachewarm::cli

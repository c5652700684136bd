// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/inotify.h"

#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "fmt/format.h"

namespace cachewarm::agent {
namespace {

// Without IN_MODIFY: writing one shared object raises 55 such events, and the one IN_CLOSE_WRITE at
// the end is sufficient.
constexpr uint32_t kMask = IN_OPEN | IN_CLOSE_NOWRITE | IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO |
                           IN_ONLYDIR | IN_EXCL_UNLINK;

absl::Status Failed(std::string_view what, std::string_view sysctl) {
  const int error = errno;
  if (error == EMFILE || error == ENFILE || error == ENOSPC || error == ENOMEM) {
    return absl::ResourceExhaustedError(
        fmt::format("{}: {}; raise sysctl {} on the node", what, std::strerror(error), sysctl));
  }
  return absl::ErrnoToStatus(error, std::string(what));
}

// Calls `each` for every event in the result of one read(2).
void Decode(std::string_view bytes, const std::function<void(const Inotify::Event&)>& each) {
  while (bytes.size() >= sizeof(inotify_event)) {
    inotify_event head{};
    std::memcpy(&head, bytes.data(), sizeof(head));
    if (bytes.size() < sizeof(head) + head.len) {
      return;
    }
    const std::string_view padded = bytes.substr(sizeof(head), head.len);
    each({.watch = head.wd, .mask = head.mask, .name = padded.substr(0, padded.find('\0'))});
    bytes.remove_prefix(sizeof(head) + head.len);
  }
}

}  // namespace

absl::StatusOr<Inotify> Inotify::Open() {
  fs::Fd fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!fd.ok()) {
    return Failed("inotify_init1", "fs.inotify.max_user_instances");
  }
  return Inotify(std::move(fd));
}

int64_t Inotify::WatchesMax(const std::string& file) {
  std::ifstream in(file);
  int64_t allowed = 0;
  return in >> allowed && allowed > 0 ? allowed : INT64_MAX;
}

absl::StatusOr<int> Inotify::Watch(int directory) {
  // Watch through the descriptor: a pod could have replaced a path component with a link.
  const std::string path = fmt::format("/proc/self/fd/{}", directory);
  const int watch = ::inotify_add_watch(fd_.get(), path.c_str(), kMask);
  if (watch < 0) {
    return Failed("inotify_add_watch", "fs.inotify.max_user_watches");
  }
  return watch;
}

void Inotify::Forget(int watch) {
  ::inotify_rm_watch(fd_.get(), watch);
}

void Inotify::Drain(const std::function<void(const Event&)>& each) {
  int queued = 0;
  if (::ioctl(fd_.get(), FIONREAD, &queued) != 0) {
    return;
  }
  std::array<char, 64U << 10U> buffer;  // not zeroed: that would cost more than a short read
  while (queued > 0) {
    const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
    if (got <= 0) {
      if (got < 0 && errno == EINTR) {
        continue;
      }
      return;
    }
    Decode({buffer.data(), static_cast<size_t>(got)}, each);
    queued -= static_cast<int>(got);
  }
}

}  // namespace cachewarm::agent

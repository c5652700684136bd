// SPDX-License-Identifier: Apache-2.0
#include "agent/remote/remote_endpoint.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/error.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {
namespace {

constexpr int kBacklog = 128;
constexpr int kAcceptsPerTurn = 64;
// Deadlines are checked at least this often while a client is connected.
constexpr int kTickMs = 1'000;
// Every user of a pod may connect: the tree itself has mode 0777.
constexpr mode_t kSocketMode = 0666;
constexpr std::string_view kNewSocket = ".state/redis/new.sock";

// Listens on a new socket and moves it to `path` below `root`. The socket is bound in a private
// directory, because bind(2) and chmod(2) would follow links that a pod makes in its tree. Its
// address begins with the root's descriptor in /proc/self/fd, because sun_path is limited to 107
// bytes.
absl::StatusOr<fs::Fd> Listen(const fs::Dir& root, const std::string& path) {
  fs::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.ok()) {
    return fs::ErrnoStatus(errno, "socket");
  }
  CW_RETURN_IF_ERROR(root.Remove(kNewSocket));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string bound = fmt::format("/proc/self/fd/{}/{}", root.fd(), kNewSocket);
  std::copy_n(bound.begin(), std::min(bound.size(), sizeof(address.sun_path) - 1),
              address.sun_path);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::chmod(bound.c_str(), kSocketMode) != 0 || ::listen(socket.get(), kBacklog) != 0) {
    return fs::ErrnoStatus(errno, path);
  }
  CW_RETURN_IF_ERROR(root.Rename(kNewSocket, path));
  return socket;
}

// A served tree. `connections` is the last member: a connection refers to the others, so it must be
// destroyed first.
struct ServedTree {
  std::optional<RemoteEntries> entries;
  fs::Fd listener;
  RequestMemory memory;
  std::list<RemoteConnection> connections;
};

class PollingEndpoint final : public RemoteEndpoint {
 public:
  PollingEndpoint(const RemoteEndpointOptions& options, fs::Fd wake)
      : options_(options),
        wake_(std::move(wake)),
        thread_([this](const std::stop_token& stop) { Run(stop); }) {}

  ~PollingEndpoint() override {
    thread_.request_stop();
    Wake();
  }

  void Serve(std::set<std::string> trees) override {
    {
      const std::lock_guard lock(mutex_);
      wanted_ = std::move(trees);
      has_changed_ = true;
    }
    Wake();
  }

 private:
  void Wake() const {
    const uint64_t one = 1;
    static_cast<void>(!::write(wake_.get(), &one, sizeof(one)));
  }

  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      Wait();
      UpdateTrees();
      const MonoTime now = options_.clock.Monotonic();
      int total = 0;
      for (auto& [path, tree] : trees_) {
        Accept(tree, now);
        Advance(tree, now);
        total += static_cast<int>(tree.connections.size());
      }
      connections_ = total;
      options_.metrics.redis_connections.Set({}, total);
    }
    for (auto& [path, tree] : trees_) {
      Close(path, tree);
    }
  }

  // Blocks until a socket is ready, Wake() is called, or a deadline may have passed.
  void Wait() {
    std::vector<pollfd> waiting = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    for (auto& [path, tree] : trees_) {
      if (!is_exhausted_) {
        waiting.push_back({.fd = tree.listener.get(), .events = POLLIN, .revents = 0});
      }
      for (const RemoteConnection& connection : tree.connections) {
        waiting.push_back({.fd = connection.fd(), .events = connection.events(), .revents = 0});
      }
    }
    const bool has_deadline = is_exhausted_ || connections_ > 0;
    ::poll(waiting.data(), waiting.size(), has_deadline ? kTickMs : -1);
    is_exhausted_ = false;
    uint64_t count = 0;
    static_cast<void>(!::read(wake_.get(), &count, sizeof(count)));
  }

  void UpdateTrees() {
    std::set<std::string> wanted;
    {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(has_changed_, false)) {
        return;
      }
      wanted = wanted_;
    }
    for (auto each = trees_.begin(); each != trees_.end();) {
      if (wanted.contains(each->first)) {
        ++each;
        continue;
      }
      connections_ -= static_cast<int>(each->second.connections.size());
      Close(each->first, each->second);
      each = trees_.erase(each);
    }
    std::erase_if(failed_, [&](const auto& path) { return !wanted.contains(path); });
    for (const std::string& path : wanted) {
      const absl::Status opened = Open(path);
      if (opened.ok()) {
        failed_.erase(path);
      } else if (failed_.insert(path).second) {
        options_.log.Warning(
            "cannot serve the Redis endpoint in a tree; its pods compile without it",
            {{"path", path}, {"err", Message(opened)}});
      }
    }
  }

  static std::string SocketPath(const std::string& tree) {
    return fmt::format("{}/{}/{}", tree, kRemoteFolder, kRemoteSocket);
  }

  absl::Status Open(const std::string& path) {
    const absl::StatusOr<fs::FileStat> found = options_.root.Stat(SocketPath(path));
    const bool has_socket = found.ok() && found->type == fs::FileType::kOther;
    const auto served = trees_.find(path);
    if (served != trees_.end() && has_socket) {
      return absl::OkStatus();
    }
    ServedTree& tree = trees_[path];
    absl::StatusOr<RemoteEntries> entries =
        RemoteEntries::Open(options_.root, path, options_.entry_limits);
    absl::StatusOr<fs::Fd> listener = entries.ok() ? Listen(options_.root, SocketPath(path))
                                                   : absl::StatusOr<fs::Fd>(entries.status());
    if (!listener.ok()) {
      if (!tree.listener.ok()) {
        trees_.erase(path);
      }
      return listener.status();
    }
    // If the tree is already served, its connections refer to `tree.entries`: keep that object.
    if (!tree.entries.has_value()) {
      tree.entries.emplace(*std::move(entries));
    }
    tree.listener = *std::move(listener);
    return absl::OkStatus();
  }

  void Close(const std::string& path, ServedTree& tree) {
    tree.connections.clear();
    options_.root.Remove(SocketPath(path)).IgnoreError();
  }

  void Accept(ServedTree& tree, MonoTime now) {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      fs::Fd socket(::accept4(tree.listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!socket.ok()) {
        // Without a free descriptor the client stays pending and would make every poll(2) return at
        // once, so Wait() then skips the listeners.
        is_exhausted_ = is_exhausted_ || errno == EMFILE || errno == ENFILE || errno == ENOMEM;
        return;
      }
      if (connections_ >= options_.limits.connections_max ||
          static_cast<int>(tree.connections.size()) >= options_.limits.connections_per_tree) {
        options_.metrics.redis_rejected_connections.Add({});
        continue;
      }
      ++connections_;
      tree.connections.emplace_back(std::move(socket),
                                    RemoteConnection::Shared{.entries = *tree.entries,
                                                             .metrics = options_.metrics,
                                                             .of_tree = tree.memory,
                                                             .of_all = memory_,
                                                             .limits = options_.limits},
                                    now);
    }
  }

  static void Advance(ServedTree& tree, MonoTime now) {
    tree.connections.remove_if([now](RemoteConnection& connection) {
      return !connection.Advance(now) || now >= connection.deadline();
    });
  }

  const RemoteEndpointOptions options_;
  const fs::Fd wake_;
  std::mutex mutex_;
  std::set<std::string> wanted_;
  bool has_changed_ = false;

  // Used by the thread only.
  RequestMemory memory_;
  std::map<std::string, ServedTree> trees_;
  std::set<std::string> failed_;  // trees that cannot be served, which is already logged
  int connections_ = 0;
  bool is_exhausted_ = false;  // no file descriptor is left for a pending client

  std::jthread thread_;  // last, because the thread uses all members above
};

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteEndpoint>> RemoteEndpoint::Start(
    const RemoteEndpointOptions& options) {
  // Remove values that a killed agent had not stored completely.
  CW_RETURN_IF_ERROR(fs::RemoveTree(options.root, kRemoteStaging));
  fs::Fd wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake.ok()) {
    return absl::ResourceExhaustedError("eventfd: no file descriptor left");
  }
  return std::make_unique<PollingEndpoint>(options, std::move(wake));
}

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/fs/fd.h"

namespace cachewarm::agent {

// One inotify(7) instance. Thread-safe.
class Inotify {
 public:
  struct Event {
    int watch = -1;  // watch number; -1 if the event reports an overflow of the queue
    uint32_t mask = 0;
    std::string_view name;  // name in the watched directory; valid during the callback
  };

  // Opens an instance. Errors: RESOURCE_EXHAUSTED above fs.inotify.max_user_instances.
  static absl::StatusOr<Inotify> Open();

  // Returns the number of watches that a user of this node may have (`file` is the sysctl
  // fs.inotify.max_user_watches); INT64_MAX if the file cannot be read.
  static int64_t WatchesMax(const std::string& file);

  int fd() const { return fd_.get(); }

  // Watches the directory with the descriptor `directory`. Returns the watch number; a repeated
  // call for the same directory returns the same number. Errors: RESOURCE_EXHAUSTED above
  // fs.inotify.max_user_watches.
  absl::StatusOr<int> Watch(int directory);
  // Removes a watch. The kernel then queues an event IN_IGNORED.
  void Forget(int watch);

  // Calls `each` for the queued events. Reads at most as many bytes as were queued at the call, so
  // it returns even if events keep arriving.
  void Drain(const std::function<void(const Event&)>& each);

 private:
  explicit Inotify(fs::Fd fd) : fd_(std::move(fd)) {}

  fs::Fd fd_;
};

}  // namespace cachewarm::agent

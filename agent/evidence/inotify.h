// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/fs/fd.h"

namespace cachewarm::agent {

// One inotify(7) instance. Thread-safe: it holds one descriptor.
class Inotify {
 public:
  struct Event {
    int watch = -1;  // -1 for an overflow
    uint32_t mask = 0;
    std::string_view name;  // valid during the callback
  };

  // RESOURCE_EXHAUSTED above fs.inotify.max_user_instances.
  static absl::StatusOr<Inotify> Open();

  int fd() const { return fd_.get(); }

  // Watches the directory that `directory` has open, for what agent/evidence records. The same
  // directory gives the same number again. RESOURCE_EXHAUSTED above fs.inotify.max_user_watches.
  absl::StatusOr<int> Watch(int directory);
  void Forget(int watch);

  // Calls `each` for what is queued now; events that arrive meanwhile may be among them, but
  // never without end.
  void Drain(const std::function<void(const Event&)>& each);

 private:
  explicit Inotify(fs::Fd fd) : fd_(std::move(fd)) {}

  fs::Fd fd_;
};

}  // namespace cachewarm::agent

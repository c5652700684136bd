// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/core/object.h"

namespace cachewarm::kube {

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark };

struct WatchEvent {
  WatchEventType type = WatchEventType::kBookmark;
  // Never null. The handler may change and keep the object. A bookmark has only
  // metadata.resourceVersion.
  std::shared_ptr<codec::Json> object;
};

using WatchEventHandler = std::function<absl::Status(WatchEvent)>;

// Splits the byte stream of a watch into events. Not thread-safe.
class WatchDecoder {
 public:
  // Feed() returns RESOURCE_EXHAUSTED for a line longer than `line_bytes_max`. With the default,
  // every object fits: etcd stores at most 1.5 MiB, and a byte takes at most six bytes in JSON ("<"
  // is written as \u003c).
  explicit WatchDecoder(WatchEventHandler on_event, size_t line_bytes_max = 16U << 20U);

  // Decodes bytes, which may be split anywhere, and calls `on_event` for every complete line.
  // Returns the error of the handler, INVALID_ARGUMENT for a malformed line, or ToStatus() of an
  // ERROR event (OUT_OF_RANGE: list again). Ignores bytes after an error.
  absl::Status Feed(std::string_view bytes);
  // Call when the stream has ended. UNAVAILABLE if its last line is incomplete.
  absl::Status Finish();

 private:
  absl::Status Line(std::string_view line);

  WatchEventHandler on_event_;
  size_t line_bytes_max_;
  std::string rest_;
  absl::Status failed_;
};

}  // namespace cachewarm::kube

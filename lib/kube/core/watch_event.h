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
  // Never null and the handler's own. Of a bookmark only metadata.resourceVersion counts.
  std::shared_ptr<codec::Json> object;
};

using WatchEventHandler = std::function<absl::Status(WatchEvent)>;

// Cuts the byte stream of a watch into events. Not thread-safe.
class WatchDecoder {
 public:
  // `line_bytes_max`: a longer line is RESOURCE_EXHAUSTED. etcd takes no object of more than 1.5
  // MiB, of which each byte may be six in JSON ("<" is written as \u003c).
  explicit WatchDecoder(WatchEventHandler on_event, size_t line_bytes_max = 16U << 20U);

  // Takes bytes as they come, cut anywhere, and calls `on_event` for every whole line. Returns the
  // handler's error, INVALID_ARGUMENT for a malformed line, or, for an ERROR event, what ToStatus()
  // makes of it (OUT_OF_RANGE: list again). After an error it takes nothing more.
  absl::Status Feed(std::string_view bytes);
  // The stream ended: UNAVAILABLE when it ended within a line.
  absl::Status Finish();

 private:
  absl::Status Line(std::string_view line);

  WatchEventHandler on_event_;
  size_t line_bytes_max_;
  std::string rest_;
  absl::Status failed_;
};

}  // namespace cachewarm::kube

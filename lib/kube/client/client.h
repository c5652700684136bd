// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>

#include "absl/status/statusor.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/core/error.h"
#include "lib/kube/core/request.h"
#include "lib/kube/core/watch_event.h"

namespace cachewarm::kube {

// The API server. Thread-safe. Both calls block and return within 1 s of `stop` (CANCELLED).
class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  // Sends one request and gives the object that was answered. Errors as ToStatus() maps them;
  // UNAVAILABLE or DEADLINE_EXCEEDED also when the server could not be reached. Idempotent requests
  // were then already retried a few times within some seconds, and 429 as the server asked.
  virtual absl::StatusOr<codec::Json> Do(const Request& request, std::stop_token stop) = 0;

  // Do() of a list whose items go to `on_item`, on this thread, without their managedFields; the
  // answer has none left. After an error some may have been given.
  using ItemHandler = std::function<void(codec::Json)>;
  virtual absl::StatusOr<codec::Json> DoList(const Request& request, const ItemHandler& on_item,
                                             std::stop_token stop);

  // Runs one watch and calls `on_event` on this thread for each event, in order. OK when the server
  // ended it in order (its timeout). OUT_OF_RANGE: the resource version is gone, list again. An
  // error of `on_event` ends the watch with it. A silent connection ends with DEADLINE_EXCEEDED.
  virtual absl::Status Watch(const Request& request, const WatchEventHandler& on_event,
                             std::stop_token stop) = 0;
};

}  // namespace cachewarm::kube

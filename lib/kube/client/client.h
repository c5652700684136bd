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

// A client of the API server. Thread-safe. Every call blocks and returns within 1 s of `stop`
// (CANCELLED).
class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  // Sends one request and returns the object of the response. Errors as ToStatus() maps them;
  // UNAVAILABLE or DEADLINE_EXCEEDED also if the server could not be reached. Idempotent requests
  // were retried a few times within some seconds before an error is returned, and 429 as the server
  // asked.
  virtual absl::StatusOr<codec::Json> Do(const Request& request, std::stop_token stop) = 0;

  // Sends a list request and passes its items to `on_item` on this thread, without managedFields;
  // the result has no items left. Some items may have been passed on before an error.
  using ItemHandler = std::function<void(codec::Json)>;
  virtual absl::StatusOr<codec::Json> DoList(const Request& request, const ItemHandler& on_item,
                                             std::stop_token stop);

  // Runs one watch and calls `on_event` on this thread for each event, in order. Returns OK when
  // the server ended the watch regularly (its timeout). Errors: OUT_OF_RANGE if the resource
  // version is gone: list again; an error of `on_event`; DEADLINE_EXCEEDED for a silent connection.
  virtual absl::Status Watch(const Request& request, const WatchEventHandler& on_event,
                             std::stop_token stop) = 0;
};

}  // namespace cachewarm::kube

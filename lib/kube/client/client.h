// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/codec/json_fwd.h"
#include "lib/kube/core/error.h"
#include "lib/kube/core/request.h"
#include "lib/kube/core/watch_event.h"

namespace cachewarm::kube {

// A client of the API server. Thread-safe. Every call blocks; when `stop` is requested, it returns
// CANCELLED within 1 s.
class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;

  // Sends one request and returns the object in the response. Retries idempotent requests a few
  // times within some seconds. After a 429, retries any request when the time that the server asked
  // for has passed, unless that time is longer than 10 s. Errors: those of ToStatus(); UNAVAILABLE
  // or DEADLINE_EXCEEDED if the server could not be reached.
  virtual absl::StatusOr<codec::Json> Do(const Request& request, std::stop_token stop) = 0;

  // Sends one request like Do() and returns the text in the response. The default implementation
  // returns UNIMPLEMENTED.
  virtual absl::StatusOr<std::string> DoText(const Request& request, std::stop_token stop);

  // Sends a list request and passes its items to `on_item` on the calling thread, without
  // managedFields; the returned list has no items left. Before an error is returned, some items may
  // already have been passed to `on_item`.
  using ItemHandler = std::function<void(codec::Json)>;
  virtual absl::StatusOr<codec::Json> DoList(const Request& request, const ItemHandler& on_item,
                                             std::stop_token stop);

  // Runs one watch and calls `on_event` on the calling thread for each event, in order. Returns OK
  // when the server ended the watch regularly, at the timeout of the request. Errors: OUT_OF_RANGE
  // if the server no longer has the resource version (list again); DEADLINE_EXCEEDED if no bytes
  // arrive for too long; the error of `on_event`.
  virtual absl::Status Watch(const Request& request, const WatchEventHandler& on_event,
                             std::stop_token stop) = 0;
};

}  // namespace cachewarm::kube

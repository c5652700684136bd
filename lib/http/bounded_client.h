// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/http/client.h"

namespace cachewarm::http {

struct BoundedClientOptions {
  std::string address;  // the only IP address that is contacted
  std::string user_agent = "cachewarm";
  // Limits the bytes of status line and headers of a response, including interim responses (1xx).
  // RESOURCE_EXHAUSTED if exceeded.
  size_t header_bytes_max = 64U << 10U;
  // Time limit of connecting. UNAVAILABLE if it is exceeded, as for a server that has not started
  // yet.
  Duration connect{10'000};
  // Time limit of a whole request, including sink and source. DEADLINE_EXCEEDED if it is exceeded.
  Duration total{3'600'000};
};

// Returns a client for an untrusted server, such as a pod of a tenant. A request keeps in memory at
// most the headers of the response, body_bytes_max bytes of its body and 256 KiB more. It fails
// after `total`, however slowly the server sends. Supports only plain HTTP/1.1, without proxies and
// name lookup: a request to an https URL or to a host other than `address` is INVALID_ARGUMENT.
// Each request uses its own connection, which is closed as soon as the needed part of the response
// has arrived. Requests run on the thread of the caller; `stop` ends them at once. Thread-safe.
// MakeBoundedClient() returns INVALID_ARGUMENT if `address` is not an IP address.
absl::StatusOr<std::unique_ptr<Client>> MakeBoundedClient(BoundedClientOptions options);

}  // namespace cachewarm::http

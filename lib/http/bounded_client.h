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
  // Time limit of connecting. If it is exceeded, the error is UNAVAILABLE, the same as for a server
  // that does not listen yet.
  Duration connect{10'000};
  // Time limit of a whole request, including sink and source. DEADLINE_EXCEEDED if it is exceeded.
  Duration total{3'600'000};
};

// Returns a client for an untrusted server, such as a pod of a tenant. A request keeps in memory at
// most the headers of the response, body_bytes_max bytes of its body and 256 KiB more. It fails
// after `total`, even if the server is still sending. Supports only plain HTTP/1.1, without proxies
// and name lookup: a request to an https URL or to a host other than `address` is INVALID_ARGUMENT.
// Each request uses its own connection. It is closed when the response has arrived, or when the
// body of an error response has filled body_bytes_max. Requests run on the thread of the caller;
// `stop` ends them at once. Thread-safe.
// MakeBoundedClient() returns INVALID_ARGUMENT if `address` is not an IP address.
absl::StatusOr<std::unique_ptr<Client>> MakeBoundedClient(BoundedClientOptions options);

}  // namespace cachewarm::http

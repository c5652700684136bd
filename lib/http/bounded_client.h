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
  std::string address;  // an IP address, the only one that is spoken to
  std::string user_agent = "cachewarm";
  // Status line and headers of an answer, with the interim answers (1xx) before it. Over it:
  // RESOURCE_EXHAUSTED.
  size_t header_bytes_max = 64U << 10U;
  // For a connection; over it: UNAVAILABLE, as for a server that is not there yet.
  Duration connect{10'000};
  // For all of a request, what its sink and source take included. Over it: DEADLINE_EXCEEDED.
  Duration total{3'600'000};
};

// A client of a server that may mean harm, such as a pod that a tenant made: whatever it answers,
// a request holds no more than its headers, its body_bytes_max and 256 KiB, and ends when its time
// is over. Plain HTTP/1.1; proxies are not used, names not looked up (INVALID_ARGUMENT).
// Every request has a connection of its own, which is closed as soon as the answer, or the part of
// it that is kept, is there. All of it happens on the caller's thread, which `stop` frees at once.
// Thread-safe; INVALID_ARGUMENT when the address is none.
absl::StatusOr<std::unique_ptr<Client>> MakeBoundedClient(BoundedClientOptions options);

}  // namespace cachewarm::http

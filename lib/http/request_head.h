// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/http/client.h"
#include "lib/http/text/url.h"

namespace cachewarm::http {

// Returns the head of a request that has its own connection (RFC 9112): the request line, Host and
// User-Agent unless the request sets them, the headers of the request, then the framing headers,
// which the request cannot set. INVALID_ARGUMENT if the name or value of a header is malformed, for
// example contains a line break. Pure.
absl::StatusOr<std::string> RequestHead(const Request& request, const Url& url,
                                        const std::string& user_agent);

}  // namespace cachewarm::http

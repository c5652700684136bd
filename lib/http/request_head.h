// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "lib/http/client.h"
#include "lib/http/url.h"

namespace cachewarm::http {

// What goes before the body of a request that has a connection of its own (RFC 9112): the request
// line, Host and User-Agent unless the request has its own, its headers, then those that frame the
// body, which are never taken from the request. INVALID_ARGUMENT names a header that would break
// out of its line. Pure.
absl::StatusOr<std::string> RequestHead(const Request& request, const Url& url,
                                        const std::string& user_agent);

}  // namespace cachewarm::http

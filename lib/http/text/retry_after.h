// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/http/text/headers.h"

namespace cachewarm::http {

// Returns the wait that a Retry-After header (RFC 9110 §10.2.3) requests, between 0 and one hour.
// The header contains seconds or a date. A date is compared with the Date header of the response,
// so that the local clock does not matter. nullopt if the header is missing or malformed, or
// contains a date and the response has no Date.
std::optional<Duration> RetryAfter(const Headers& headers);

// Parses "Sun, 06 Nov 1994 08:49:37 GMT" (IMF-fixdate, RFC 9110 §5.6.7); nullopt for any other
// form.
std::optional<WallTime> ParseHttpDate(std::string_view text);

// Stores in an error status how long a server asked its clients to wait. An OK status stays
// unchanged.
void SetRetryAfter(absl::Status& status, Duration wait);
// Returns the stored duration; nullopt if there is none.
std::optional<Duration> RetryAfterOf(const absl::Status& status);

}  // namespace cachewarm::http

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/http/headers.h"

namespace cachewarm::http {

// How long a Retry-After header (RFC 9110 §10.2.3) asks us to wait: its seconds, or its date less
// the answer's own Date, so that nobody's clock need be right. At most an hour, at least nothing;
// nullopt when the header is missing or malformed, or a date has no Date to compare with. Pure.
std::optional<Duration> RetryAfter(const Headers& headers);

// "Sun, 06 Nov 1994 08:49:37 GMT" (IMF-fixdate, RFC 9110 §5.6.7); nullopt for every other form.
std::optional<WallTime> ParseHttpDate(std::string_view text);

}  // namespace cachewarm::http

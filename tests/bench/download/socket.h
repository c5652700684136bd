// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace cachewarm::bench {

// Downloads `http://a.b.c.d:port/path` without a library: one GET over one connection by recv(2)
// into one buffer. Returns the bytes of the body. Errors: a response that is not 200, has no
// Content-Length, or ends early. Blocks.
absl::StatusOr<uint64_t> DownloadBySocket(const std::string& url);

}  // namespace cachewarm::bench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace cachewarm::bench {

// What a download costs without a library: one GET over one connection to
// `http://a.b.c.d:port/path` by recv(2) into one buffer. Returns the bytes of the body. An answer
// without a Content-Length, cut short or other than 200 is an error. Blocks.
absl::StatusOr<uint64_t> DownloadBySocket(const std::string& url);

}  // namespace cachewarm::bench

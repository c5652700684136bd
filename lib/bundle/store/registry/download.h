// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "lib/bundle/store/registry/session.h"
#include "lib/bundle/store/store.h"

namespace cachewarm::bundle {

struct Download {
  std::string url;
  std::string scope;
  BlobRange range;
};

// Streams a range of a blob to `sink` by Range requests. After a broken connection, resumes at the
// same byte; UNAVAILABLE after SessionOptions::tries attempts without progress. Follows at most
// three redirects per attempt. If the server ignores Range, skips the bytes before the range.
absl::Status RunDownload(Session& session, const Download& download, Sink& sink,
                         std::stop_token stop);

}  // namespace cachewarm::bundle

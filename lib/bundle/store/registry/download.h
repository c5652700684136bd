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

// Streams a range of a blob by Range requests: a connection that breaks is taken up at the byte
// where it broke, as long as every few tries bring a byte (then UNAVAILABLE). Follows at most three
// redirects a try. Servers that ignore Range cost what comes before the range once more.
absl::Status RunDownload(Session& session, const Download& download, Sink& sink,
                         std::stop_token stop);

}  // namespace cachewarm::bundle

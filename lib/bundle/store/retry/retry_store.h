// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/bundle/store/forwarding_store.h"

namespace cachewarm::bundle {

struct RetryOptions {
  int tries = 4;  // attempts, including the first; progress of a read restarts the count
  BackoffPolicy backoff{.first = Duration(100), .most = Duration(2'000)};
};

// Retries calls of a store that fail with a transient error: UNAVAILABLE (for example an
// unreachable network file system) or ABORTED (for example a file handle that became stale by a
// rename on another node). A read resumes after the bytes that its sink accepted; an error of the
// sink ends the read. Uploads are not retried, because their bytes are not kept: the caller must
// start a new one. Ping() is not retried, so that its result describes the present.
//
// Do not use it for stores that retry by themselves: the numbers of attempts would multiply.
// RegistryStore retries by itself (RetryBudget), because only its Session knows the Retry-After
// header and the offset of an upload.
class RetryStore : public ForwardingStore {
 public:
  // `clock` must outlive this object.
  RetryStore(std::unique_ptr<Store> inner, const Clock& clock, Random random,
             RetryOptions options = {});

  absl::Status ReadBlob(const std::string& repository, const BlobRange& range, Sink& sink,
                        std::stop_token stop) override;

 private:
  absl::Status Call(StoreOperation operation, const std::stop_token& stop,
                    Attempt attempt) override;
  // Waits for the backoff after `failures` failures. False if `stop` was requested.
  bool Pause(int failures, const std::stop_token& stop) const;

  const Clock& clock_;
  const Random random_;
  const RetryOptions options_;
};

}  // namespace cachewarm::bundle

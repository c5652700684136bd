// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "lib/bundle/store/forwarding_store.h"
#include "lib/bundle/store/limited/bandwidth.h"
#include "lib/bundle/store/limited/semaphore.h"

namespace cachewarm::bundle {

struct StoreLimits {
  int connections = 0;  // maximum number of concurrent reads, and also of writes; 0: no limit
  // Limits the rate at which blob bytes are read. Several stores may share it. Null: no limit.
  std::shared_ptr<Bandwidth> downloads;
};

// Limits the concurrent calls and the download rate of a store. Reads and writes have separate
// limits, because a copy within one store writes while it reads: with a common limit such copies
// could deadlock. For the same reason the sink of a read must not read from the same store, and the
// producer of an upload must not write to the same store. Ping() is not limited. Calls that wait
// return CANCELLED soon after `stop`.
class LimitedStore : public ForwardingStore {
 public:
  LimitedStore(std::unique_ptr<Store> inner, StoreLimits limits);

  absl::Status ReadBlob(const std::string& repository, const BlobRange& range, Sink& sink,
                        std::stop_token stop) override;
  absl::StatusOr<std::unique_ptr<BlobUpload>> StartBlob(const std::string& repository,
                                                        std::stop_token stop) override;

 private:
  class Upload;

  absl::Status Call(StoreOperation operation, const std::stop_token& stop,
                    Attempt attempt) override;

  const std::shared_ptr<Bandwidth> downloads_;
  Semaphore reading_;
  Semaphore writing_;
};

}  // namespace cachewarm::bundle

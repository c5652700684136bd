// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/retry/retry_store.h"

#include <utility>

#include "lib/base/status.h"
#include "lib/bundle/store/counting_sink.h"

namespace cachewarm::bundle {
namespace {

bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status);
}

absl::Status Stopped() {
  return absl::CancelledError("stopped while waiting to retry a store call");
}

}  // namespace

RetryStore::RetryStore(std::unique_ptr<Store> inner, const Clock& clock, Random random,
                       RetryOptions options)
    : ForwardingStore(std::move(inner)),
      clock_(clock),
      random_(std::move(random)),
      options_(options) {}

bool RetryStore::Pause(int failures, const std::stop_token& stop) const {
  return SleepFor(clock_, BackoffDelay(options_.backoff, failures - 1, random_()), stop);
}

absl::Status RetryStore::Call(StoreOperation operation, const std::stop_token& stop,
                              Attempt attempt) {
  const int tries = operation == StoreOperation::kPing ? 1 : options_.tries;
  for (int failures = 1;; ++failures) {
    absl::Status status = attempt().status();
    if (!IsTransient(status) || failures >= tries) {
      return status;
    }
    if (!Pause(failures, stop)) {
      return Stopped();
    }
  }
}

absl::Status RetryStore::ReadBlob(const std::string& repository, const BlobRange& range, Sink& sink,
                                  std::stop_token stop) {
  CountingSink counted(sink);
  int64_t taken = 0;
  for (int failures = 1;; ++failures) {
    absl::Status read = inner().ReadBlob(repository,
                                         {.digest = range.digest,
                                          .offset = range.offset + counted.bytes(),
                                          .bytes = range.bytes - counted.bytes()},
                                         counted, stop);
    if (counted.bytes() > std::exchange(taken, counted.bytes())) {
      failures = 1;
    }
    if (!counted.status().ok() || !IsTransient(read) || failures >= options_.tries) {
      return read;
    }
    if (!Pause(failures, stop)) {
      return Stopped();
    }
  }
}

}  // namespace cachewarm::bundle

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

template <typename Call>
auto RetryStore::Retry(const std::stop_token& stop, Call call) {
  for (int failures = 1;; ++failures) {
    auto result = call();
    if (!IsTransient(StatusOf(result)) || failures >= options_.tries) {
      return result;
    }
    if (!Pause(failures, stop)) {
      return decltype(result)(Stopped());
    }
  }
}

absl::StatusOr<bool> RetryStore::HasBlob(const std::string& repository, const Digest& digest,
                                         std::stop_token stop) {
  return Retry(stop, [&] { return inner().HasBlob(repository, digest, stop); });
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

absl::StatusOr<std::unique_ptr<BlobUpload>> RetryStore::StartBlob(const std::string& repository,
                                                                  std::stop_token stop) {
  return Retry(stop, [&] { return inner().StartBlob(repository, stop); });
}

absl::StatusOr<bool> RetryStore::MountBlob(const std::string& from, const std::string& repository,
                                           const Digest& digest, std::stop_token stop) {
  return Retry(stop, [&] { return inner().MountBlob(from, repository, digest, stop); });
}

absl::StatusOr<std::string> RetryStore::ReadManifest(const std::string& repository,
                                                     const Digest& digest, std::stop_token stop) {
  return Retry(stop, [&] { return inner().ReadManifest(repository, digest, stop); });
}

absl::StatusOr<Digest> RetryStore::ResolveTag(const std::string& repository, const std::string& tag,
                                              std::stop_token stop) {
  return Retry(stop, [&] { return inner().ResolveTag(repository, tag, stop); });
}

absl::StatusOr<Digest> RetryStore::WriteManifest(const std::string& repository,
                                                 const std::string& bytes, const std::string& tag,
                                                 std::stop_token stop) {
  return Retry(stop, [&] { return inner().WriteManifest(repository, bytes, tag, stop); });
}

absl::StatusOr<std::vector<Descriptor>> RetryStore::Referrers(const std::string& repository,
                                                              const Digest& subject,
                                                              const std::string& artifact_type,
                                                              std::stop_token stop) {
  return Retry(stop, [&] { return inner().Referrers(repository, subject, artifact_type, stop); });
}

absl::StatusOr<Digest> RetryStore::WriteReferrer(const std::string& repository,
                                                 const std::string& bytes, std::stop_token stop) {
  return Retry(stop, [&] { return inner().WriteReferrer(repository, bytes, stop); });
}

}  // namespace cachewarm::bundle

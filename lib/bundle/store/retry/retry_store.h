// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/bundle/store/forwarding_store.h"

namespace cachewarm::bundle {

struct RetryOptions {
  int tries = 4;  // the first one included; a read that brought something has all but one again
  BackoffPolicy backoff{.first = Duration(100), .most = Duration(2'000)};
};

// A store of which a call that failed in passing (UNAVAILABLE, ABORTED: a network file system that
// was away, a file handle that another node's rename made stale) is repeated. A read continues
// behind what its consumer took; an error of the consumer ends it. What an upload was given is not
// kept anywhere, so a broken upload is the caller's to begin again; and a Ping asks about now.
//
// For stores that do not repeat by themselves. A registry does, below (Session, RetryBudget): only
// there is it known what a Retry-After asked for and how far an upload came; two layers of tries
// would multiply.
class RetryStore : public ForwardingStore {
 public:
  // `clock` must outlive it.
  RetryStore(std::unique_ptr<Store> inner, const Clock& clock, Random random,
             RetryOptions options = {});

  absl::StatusOr<bool> HasBlob(const std::string& repository, const Digest& digest,
                               std::stop_token stop) override;
  absl::Status ReadBlob(const std::string& repository, const BlobRange& range, Sink& sink,
                        std::stop_token stop) override;
  absl::StatusOr<std::unique_ptr<BlobUpload>> StartBlob(const std::string& repository,
                                                        std::stop_token stop) override;
  absl::StatusOr<bool> MountBlob(const std::string& from, const std::string& repository,
                                 const Digest& digest, std::stop_token stop) override;
  absl::StatusOr<std::string> ReadManifest(const std::string& repository, const Digest& digest,
                                           std::stop_token stop) override;
  absl::StatusOr<Digest> ResolveTag(const std::string& repository, const std::string& tag,
                                    std::stop_token stop) override;
  absl::StatusOr<Digest> WriteManifest(const std::string& repository, const std::string& bytes,
                                       const std::string& tag, std::stop_token stop) override;
  absl::StatusOr<std::vector<Descriptor>> Referrers(const std::string& repository,
                                                    const Digest& subject,
                                                    const std::string& artifact_type,
                                                    std::stop_token stop) override;
  absl::StatusOr<Digest> WriteReferrer(const std::string& repository, const std::string& bytes,
                                       std::stop_token stop) override;

 private:
  template <typename Call>
  auto Retry(const std::stop_token& stop, Call call);
  // False: stopped.
  bool Pause(int failures, const std::stop_token& stop) const;

  const Clock& clock_;
  const Random random_;
  const RetryOptions options_;
};

}  // namespace cachewarm::bundle

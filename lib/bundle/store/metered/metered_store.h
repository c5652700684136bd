// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/bundle/store/forwarding_store.h"

namespace cachewarm::bundle {

// One call of a store that has ended.
struct StoreCall {
  // has_blob, read_blob, write_blob, mount_blob, read_manifest, resolve_tag, write_manifest,
  // referrers, write_referrer, ping
  std::string_view operation;
  // kCancelled also for an upload that was given up without an error of the store.
  absl::StatusCode code = absl::StatusCode::kOk;
  // Of blobs and manifests that came or went; of a read that failed too.
  int64_t bytes = 0;
  // Inside the store: without the time that the consumer of a read, or whoever brings the bytes of
  // an upload, took.
  Duration time{0};
};

// Called by the thread that made the call, several at the same time; must be quick.
using OnStoreCall = std::function<void(const StoreCall&)>;

// A store whose calls are told of. An upload is one call, from StartBlob to its Commit or its end.
// Around the other decorators it shows what a program waits for; inside of them, what a store does.
class MeteredStore : public ForwardingStore {
 public:
  // `clock` must outlive it.
  MeteredStore(std::unique_ptr<Store> inner, const Clock& clock, OnStoreCall on_call);

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
  absl::Status Ping(std::stop_token stop) override;

 private:
  class Upload;
  class TimedSink;

  template <typename Call>
  auto Meter(std::string_view operation, Call run);

  const Clock& clock_;
  const OnStoreCall on_call_;
};

}  // namespace cachewarm::bundle

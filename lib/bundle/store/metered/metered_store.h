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

// Describes one finished call of a store.
struct StoreCall {
  // Name of the operation: has_blob, read_blob, write_blob, mount_blob, read_manifest, resolve_tag,
  // write_manifest, referrers, write_referrer, ping.
  std::string_view operation;
  // Result of the call; also kCancelled if an upload was destroyed without Commit().
  absl::StatusCode code = absl::StatusCode::kOk;
  // Number of bytes of blobs and manifests that were read or written, including those that a failed
  // read delivered.
  int64_t bytes = 0;
  // Time spent in the store, without the time spent in the sink of a read or the source of an
  // upload.
  Duration time{0};
};

// Called on the thread that made the call, concurrently; must not block.
using OnStoreCall = std::function<void(const StoreCall&)>;

// Reports every call of a store to `on_call`. An upload is one call, from StartBlob() until it is
// destroyed. As the outermost decorator, a MeteredStore measures how long callers wait; as the
// innermost, how long the store itself takes.
class MeteredStore : public ForwardingStore {
 public:
  // `clock` must outlive this object.
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

  // Calls `run` and reports the call. `run` may set StoreCall::bytes, and must set StoreCall::time
  // to the time that it spent in a sink: this time does not count.
  template <typename Call>
  auto Meter(std::string_view operation, Call run);

  const Clock& clock_;
  const OnStoreCall on_call_;
};

}  // namespace cachewarm::bundle

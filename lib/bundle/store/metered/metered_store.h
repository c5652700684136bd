// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/bundle/store/forwarding_store.h"

namespace cachewarm::bundle {

// Describes one finished call of a store.
struct StoreCall {
  std::string_view operation;  // from NameOf()
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

  absl::Status ReadBlob(const std::string& repository, const BlobRange& range, Sink& sink,
                        std::stop_token stop) override;
  absl::StatusOr<std::unique_ptr<BlobUpload>> StartBlob(const std::string& repository,
                                                        std::stop_token stop) override;

 private:
  class Upload;
  class TimedSink;

  absl::Status Call(StoreOperation operation, const std::stop_token& stop,
                    Attempt attempt) override;

  const Clock& clock_;
  const OnStoreCall on_call_;
};

}  // namespace cachewarm::bundle

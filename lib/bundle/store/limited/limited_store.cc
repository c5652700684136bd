// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/limited/limited_store.h"

#include <utility>

#include "lib/base/status.h"

namespace cachewarm::bundle {
namespace {

class ThrottledSink : public Sink {
 public:
  ThrottledSink(Sink& sink, Bandwidth& bandwidth, std::stop_token stop)
      : sink_(sink), bandwidth_(bandwidth), stop_(std::move(stop)) {}
  absl::Status Write(std::string_view bytes) override {
    CW_RETURN_IF_ERROR(bandwidth_.Acquire(static_cast<int64_t>(bytes.size()), stop_));
    return sink_.Write(bytes);
  }

 private:
  Sink& sink_;
  Bandwidth& bandwidth_;
  const std::stop_token stop_;
};

}  // namespace

class LimitedStore::Upload : public BlobUpload {
 public:
  Upload(std::unique_ptr<BlobUpload> upload, Semaphore& writing, std::stop_token stop)
      : upload_(std::move(upload)), writing_(writing), stop_(std::move(stop)) {}

  absl::Status Write(std::string_view bytes) override {
    CW_ASSIGN_OR_RETURN(const Semaphore::Permit permit, writing_.Acquire(stop_));
    return upload_->Write(bytes);
  }
  absl::StatusOr<Descriptor> Commit(const Digest& expected) override {
    CW_ASSIGN_OR_RETURN(const Semaphore::Permit permit, writing_.Acquire(stop_));
    return upload_->Commit(expected);
  }

 private:
  const std::unique_ptr<BlobUpload> upload_;
  Semaphore& writing_;
  const std::stop_token stop_;
};

LimitedStore::LimitedStore(std::unique_ptr<Store> inner, StoreLimits limits)
    : ForwardingStore(std::move(inner)),
      downloads_(std::move(limits.downloads)),
      reading_(limits.connections),
      writing_(limits.connections) {}

absl::Status LimitedStore::Call(StoreOperation operation, const std::stop_token& stop,
                                Attempt attempt) {
  if (operation == StoreOperation::kPing) {
    return attempt().status();
  }
  Semaphore& calls = IsWrite(operation) ? writing_ : reading_;
  CW_ASSIGN_OR_RETURN(const Semaphore::Permit permit, calls.Acquire(stop));
  return attempt().status();
}

absl::Status LimitedStore::ReadBlob(const std::string& repository, const BlobRange& range,
                                    Sink& sink, std::stop_token stop) {
  if (downloads_ == nullptr) {
    return ForwardingStore::ReadBlob(repository, range, sink, stop);
  }
  ThrottledSink throttled(sink, *downloads_, stop);
  return ForwardingStore::ReadBlob(repository, range, throttled, stop);
}

absl::StatusOr<std::unique_ptr<BlobUpload>> LimitedStore::StartBlob(const std::string& repository,
                                                                    std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(std::unique_ptr<BlobUpload> upload,
                      ForwardingStore::StartBlob(repository, stop));
  return std::make_unique<Upload>(std::move(upload), writing_, stop);
}

}  // namespace cachewarm::bundle

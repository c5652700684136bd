// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/store/metered/metered_store.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"

namespace cachewarm::bundle {
// Measures the time spent in the sink of a read, which does not count as time of the store.
class MeteredStore::TimedSink : public Sink {
 public:
  TimedSink(Sink& sink, const Clock& clock) : sink_(sink), clock_(clock) {}
  absl::Status Write(std::string_view bytes) override {
    const MonoTime begin = clock_.Monotonic();
    absl::Status status = sink_.Write(bytes);
    time_ += clock_.Monotonic() - begin;
    bytes_ += static_cast<int64_t>(bytes.size());
    return status;
  }
  Duration time() const { return time_; }
  int64_t bytes() const { return bytes_; }

 private:
  Sink& sink_;
  const Clock& clock_;
  Duration time_{0};
  int64_t bytes_ = 0;
};

class MeteredStore::Upload : public BlobUpload {
  template <typename Call>
  auto Timed(Call call) {
    const MonoTime begin = store_.clock_.Monotonic();
    auto result = call();
    call_.time += store_.clock_.Monotonic() - begin;
    return result;
  }

 public:
  Upload(std::unique_ptr<BlobUpload> upload, const MeteredStore& store, Duration time)
      : upload_(std::move(upload)), store_(store) {
    call_.time = time;
  }
  ~Upload() override { store_.on_call_(call_); }

  absl::Status Write(std::string_view bytes) override {
    absl::Status status = Timed([&] { return upload_->Write(bytes); });
    if (status.ok()) {
      call_.bytes += static_cast<int64_t>(bytes.size());
    } else {
      call_.code = status.code();
    }
    return status;
  }
  absl::StatusOr<Descriptor> Commit(const Digest& expected) override {
    auto blob = Timed([&] { return upload_->Commit(expected); });
    call_.code = blob.status().code();
    return blob;
  }

 private:
  const std::unique_ptr<BlobUpload> upload_;
  const MeteredStore& store_;
  StoreCall call_{.operation = NameOf(StoreOperation::kStartBlob),
                  .code = absl::StatusCode::kCancelled};
};

MeteredStore::MeteredStore(std::unique_ptr<Store> inner, const Clock& clock, OnStoreCall on_call)
    : ForwardingStore(std::move(inner)), clock_(clock), on_call_(std::move(on_call)) {}

absl::Status MeteredStore::Call(StoreOperation operation, const std::stop_token& /*stop*/,
                                Attempt attempt) {
  const MonoTime begin = clock_.Monotonic();
  const absl::StatusOr<int64_t> manifest_bytes = attempt();
  on_call_({.operation = NameOf(operation),
            .code = manifest_bytes.status().code(),
            .bytes = manifest_bytes.value_or(0),
            .time = clock_.Monotonic() - begin});
  return manifest_bytes.status();
}

absl::Status MeteredStore::ReadBlob(const std::string& repository, const BlobRange& range,
                                    Sink& sink, std::stop_token stop) {
  const MonoTime begin = clock_.Monotonic();
  TimedSink timed(sink, clock_);
  absl::Status read = inner().ReadBlob(repository, range, timed, std::move(stop));
  const Duration time = clock_.Monotonic() - begin - timed.time();
  on_call_({.operation = NameOf(StoreOperation::kReadBlob),
            .code = read.code(),
            .bytes = timed.bytes(),
            .time = std::max(Duration(0), time)});
  return read;
}

absl::StatusOr<std::unique_ptr<BlobUpload>> MeteredStore::StartBlob(const std::string& repository,
                                                                    std::stop_token stop) {
  const MonoTime begin = clock_.Monotonic();
  auto upload = inner().StartBlob(repository, std::move(stop));
  const Duration time = clock_.Monotonic() - begin;
  if (!upload.ok()) {
    on_call_({.operation = NameOf(StoreOperation::kStartBlob),
              .code = upload.status().code(),
              .time = time});
    return upload.status();
  }
  return std::make_unique<Upload>(*std::move(upload), *this, time);
}

}  // namespace cachewarm::bundle

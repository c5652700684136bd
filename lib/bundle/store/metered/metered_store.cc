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
  absl::StatusOr<Descriptor> Commit() override {
    auto blob = Timed([&] { return upload_->Commit(); });
    call_.code = blob.status().code();
    return blob;
  }

 private:
  const std::unique_ptr<BlobUpload> upload_;
  const MeteredStore& store_;
  StoreCall call_{.operation = "write_blob", .code = absl::StatusCode::kCancelled};
};

MeteredStore::MeteredStore(std::unique_ptr<Store> inner, const Clock& clock, OnStoreCall on_call)
    : ForwardingStore(std::move(inner)), clock_(clock), on_call_(std::move(on_call)) {}

template <typename Call>
auto MeteredStore::Meter(std::string_view operation, Call run) {
  StoreCall call{.operation = operation};
  const MonoTime begin = clock_.Monotonic();
  auto result = run(call);
  call.time = std::max(Duration(0), clock_.Monotonic() - begin - call.time);
  call.code = StatusOf(result).code();
  on_call_(call);
  return result;
}

absl::StatusOr<bool> MeteredStore::HasBlob(const std::string& repository, const Digest& digest,
                                           std::stop_token stop) {
  return Meter("has_blob", [&](StoreCall&) { return inner().HasBlob(repository, digest, stop); });
}

absl::Status MeteredStore::ReadBlob(const std::string& repository, const BlobRange& range,
                                    Sink& sink, std::stop_token stop) {
  return Meter("read_blob", [&](StoreCall& call) {
    TimedSink timed(sink, clock_);
    absl::Status read = inner().ReadBlob(repository, range, timed, stop);
    call.bytes = timed.bytes();
    call.time = timed.time();
    return read;
  });
}

absl::StatusOr<std::unique_ptr<BlobUpload>> MeteredStore::StartBlob(const std::string& repository,
                                                                    std::stop_token stop) {
  const MonoTime begin = clock_.Monotonic();
  auto upload = inner().StartBlob(repository, std::move(stop));
  const Duration time = clock_.Monotonic() - begin;
  if (!upload.ok()) {
    on_call_({.operation = "write_blob", .code = upload.status().code(), .time = time});
    return upload.status();
  }
  return std::make_unique<Upload>(*std::move(upload), *this, time);
}

absl::StatusOr<bool> MeteredStore::MountBlob(const std::string& from, const std::string& repository,
                                             const Digest& digest, std::stop_token stop) {
  return Meter("mount_blob",
               [&](StoreCall&) { return inner().MountBlob(from, repository, digest, stop); });
}

absl::StatusOr<std::string> MeteredStore::ReadManifest(const std::string& repository,
                                                       const Digest& digest, std::stop_token stop) {
  return Meter("read_manifest", [&](StoreCall& call) {
    auto text = inner().ReadManifest(repository, digest, stop);
    call.bytes = text.ok() ? static_cast<int64_t>(text->size()) : 0;
    return text;
  });
}

absl::StatusOr<Digest> MeteredStore::ResolveTag(const std::string& repository,
                                                const std::string& tag, std::stop_token stop) {
  return Meter("resolve_tag",
               [&](StoreCall&) { return inner().ResolveTag(repository, tag, stop); });
}

absl::StatusOr<Digest> MeteredStore::WriteManifest(const std::string& repository,
                                                   const std::string& bytes, const std::string& tag,
                                                   std::stop_token stop) {
  return Meter("write_manifest", [&](StoreCall& call) {
    auto digest = inner().WriteManifest(repository, bytes, tag, stop);
    call.bytes = digest.ok() ? static_cast<int64_t>(bytes.size()) : 0;
    return digest;
  });
}

absl::StatusOr<std::vector<Descriptor>> MeteredStore::Referrers(const std::string& repository,
                                                                const Digest& subject,
                                                                const std::string& artifact_type,
                                                                std::stop_token stop) {
  return Meter("referrers", [&](StoreCall&) {
    return inner().Referrers(repository, subject, artifact_type, stop);
  });
}

absl::StatusOr<Digest> MeteredStore::WriteReferrer(const std::string& repository,
                                                   const std::string& bytes, std::stop_token stop) {
  return Meter("write_referrer", [&](StoreCall& call) {
    auto digest = inner().WriteReferrer(repository, bytes, stop);
    call.bytes = digest.ok() ? static_cast<int64_t>(bytes.size()) : 0;
    return digest;
  });
}

absl::Status MeteredStore::Ping(std::stop_token stop) {
  return Meter("ping", [&](StoreCall&) { return inner().Ping(stop); });
}

}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/transfer.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/unpack/frames.h"
#include "lib/bundle/unpack/members.h"

namespace cachewarm::bundle {
namespace {

// Forwards bytes and reports the progress.
class ProgressSink : public Sink {
 public:
  ProgressSink(Sink& sink, const OnProgress& on_progress, int64_t total_bytes)
      : sink_(sink), on_progress_(on_progress), total_bytes_(total_bytes) {}

  absl::Status Write(std::string_view bytes) override {
    CW_RETURN_IF_ERROR(sink_.Write(bytes));
    done_bytes_ += static_cast<int64_t>(bytes.size());
    if (on_progress_) {
      on_progress_(done_bytes_, total_bytes_);
    }
    return absl::OkStatus();
  }

 private:
  Sink& sink_;
  const OnProgress& on_progress_;
  const int64_t total_bytes_;
  int64_t done_bytes_ = 0;
};

// Forwards bytes and hashes them.
class HashingSink : public Sink {
 public:
  explicit HashingSink(Sink& sink) : sink_(sink) {}
  absl::Status Write(std::string_view bytes) override {
    hash_.Update(bytes);
    return sink_.Write(bytes);
  }
  Digest Finish() { return std::exchange(hash_, Sha256()).Finish(); }

 private:
  Sink& sink_;
  Sha256 hash_;
};

absl::Status DigestMismatch(std::string_view what, const Digest& expected) {
  return absl::DataLossError(
      fmt::format("{} does not match its digest sha256 {}", what, expected.Short()));
}

// Creates no files: the content of every file is only verified.
class DiscardedFiles : public FileMaker {
 public:
  absl::StatusOr<fs::Fd> Make(const Entry& /*entry*/) override { return fs::Fd(); }
};

// Hashes the uncompressed tar of each layer and compares it with the layer's diff_id. Frames must
// be passed in order.
class TarHasher {
 public:
  explicit TarHasher(const Config& config) : config_(config), hashes_(config.layers.size()) {
    for (const LayerIndex& layer : config.layers) {
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) +
                      static_cast<int64_t>(layer.frames.size()));
    }
  }

  void Update(const RawFrame& frame) {
    const auto layer = std::upper_bound(ends_.begin(), ends_.end(), frame.index) - ends_.begin();
    hashes_[static_cast<size_t>(layer)].Update(frame.raw);
  }

  absl::Status Check() {
    for (size_t i = 0; i < hashes_.size(); ++i) {
      if (const Digest& diff_id = config_.layers[i].diff_id; hashes_[i].Finish() != diff_id) {
        return DigestMismatch("an uncompressed layer", diff_id);
      }
    }
    return absl::OkStatus();
  }

 private:
  const Config& config_;
  std::vector<Sha256> hashes_;
  std::vector<int64_t> ends_;  // for each layer, the index after its last frame
};

int64_t LayerBytes(const Manifest& manifest) {
  return PackedBytes(manifest) - manifest.config.bytes;
}

absl::Status CopyBlob(const RepositoryRef& from, const RepositoryRef& to, const Descriptor& blob,
                      CopyReport& report, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(bool there, to.store.HasBlob(to.repository, blob.digest, stop));
  if (!there && &from.store == &to.store) {
    CW_ASSIGN_OR_RETURN(there,
                        to.store.MountBlob(from.repository, to.repository, blob.digest, stop));
  }
  if (there) {
    report.present_bytes += blob.bytes;
    return absl::OkStatus();
  }
  CW_ASSIGN_OR_RETURN(const auto upload, to.store.StartBlob(to.repository, stop));
  CW_RETURN_IF_ERROR(from.store.ReadBlob(
      from.repository, {.digest = blob.digest, .bytes = blob.bytes}, *upload, stop));
  CW_RETURN_IF_ERROR(upload->Commit(blob.digest).status());
  report.copied_bytes += blob.bytes;
  return absl::OkStatus();
}

absl::StatusOr<bool> HasLayers(const RepositoryRef& ref, const Bundle* bundle,
                               std::stop_token stop) {
  if (bundle == nullptr) {
    return false;
  }
  for (const Descriptor& layer : bundle->manifest.layers) {
    CW_ASSIGN_OR_RETURN(const bool there, ref.store.HasBlob(ref.repository, layer.digest, stop));
    if (!there || layer.bytes == 0) {
      return false;
    }
    // Read the last byte of the layer to detect truncation: a bundle that reuses a truncated layer
    // could never be unpacked.
    TextSink last(1);
    const absl::Status read = ref.store.ReadBlob(
        ref.repository, {.digest = layer.digest, .offset = layer.bytes - 1, .bytes = 1}, last,
        stop);
    if (!read.ok()) {
      return IsRetryable(read) || absl::IsCancelled(read) ? absl::StatusOr<bool>(read) : false;
    }
  }
  return true;
}

// Starts an upload when the first byte arrives. If no byte arrives, no blob is written.
class LazyUpload : public LayerSink {
 public:
  LazyUpload(const RepositoryRef& ref, std::stop_token stop) : ref_(ref), stop_(std::move(stop)) {}

  absl::Status Write(std::string_view bytes) override {
    if (upload_ == nullptr) {
      CW_ASSIGN_OR_RETURN(upload_, ref_.store.StartBlob(ref_.repository, stop_));
    }
    return upload_->Write(bytes);
  }

  absl::StatusOr<Descriptor> End() override {
    CW_ASSIGN_OR_RETURN(Descriptor stored, upload_->Commit());
    bytes_ = stored.bytes;
    return stored;
  }

  // Returns the size of the blob, 0 if nothing was written.
  int64_t bytes() const { return bytes_; }

 private:
  const RepositoryRef& ref_;
  std::stop_token stop_;
  std::unique_ptr<BlobUpload> upload_;
  int64_t bytes_ = 0;
};

}  // namespace

absl::StatusOr<Publication> Publish(const RepositoryRef& ref, std::vector<PackFile> files,
                                    const Facts& facts, const PublishOptions& options,
                                    std::stop_token stop) {
  PackOptions pack = options.pack;
  CW_ASSIGN_OR_RETURN(const bool has_base, HasLayers(ref, pack.base, stop));
  if (!has_base && pack.keep_base) {
    return absl::FailedPreconditionError(
        pack.base == nullptr ? std::string("keep_base needs a base bundle")
                             : fmt::format("the store lacks a layer of the base bundle {}",
                                           pack.base->digest.Short()));
  }
  if (!has_base) {
    pack.base = nullptr;
  }
  LazyUpload layer(ref, stop);
  CW_ASSIGN_OR_RETURN(const Packed packed, Pack(std::move(files), facts, pack, layer, stop));
  CW_RETURN_IF_ERROR(WriteSmallBlob(ref.store, ref.repository, packed.config_text, stop).status());
  CW_RETURN_IF_ERROR(
      ref.store.WriteManifest(ref.repository, packed.manifest_text, options.tag, stop).status());
  return Publication{.digest = packed.digest,
                     .bytes = PackedBytes(packed.manifest),
                     .new_bytes = layer.bytes() + packed.manifest.config.bytes,
                     .files = static_cast<int64_t>(packed.config.entries.size()),
                     .raw_bytes = RawBytes(packed.config)};
}

absl::StatusOr<Bundle> ReadBundle(const RepositoryRef& ref, const Digest& digest,
                                  std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const std::string manifest,
                      ref.store.ReadManifest(ref.repository, digest, stop));
  Bundle bundle{.digest = digest};
  CW_ASSIGN_OR_RETURN(bundle.manifest, ParseManifest(manifest));
  CW_ASSIGN_OR_RETURN(
      const std::string config,
      ReadSmallBlob(ref.store, ref.repository, bundle.manifest.config, kConfigBytesMax, stop));
  CW_ASSIGN_OR_RETURN(bundle.config, ParseConfig(config));
  return bundle;
}

absl::Status Extract(const RepositoryRef& ref, const Extraction& extraction, std::stop_token stop) {
  const Bundle& bundle = extraction.bundle;
  Unpacker unpacker(bundle.config, bundle.manifest, extraction.staging, extraction.options);
  CW_RETURN_IF_ERROR(unpacker.Start());
  int64_t total_bytes = 0;
  for (const FrameRun& run : unpacker.runs()) {
    total_bytes += run.bytes;
  }
  ProgressSink counted(unpacker, extraction.on_progress, total_bytes);
  for (const FrameRun& run : unpacker.runs()) {
    CW_RETURN_IF_ERROR(ref.store.ReadBlob(ref.repository,
                                          {.digest = bundle.manifest.layers[run.layer].digest,
                                           .offset = run.offset,
                                           .bytes = run.bytes},
                                          counted, stop));
  }
  return unpacker.Finish();
}

absl::Status Verify(const RepositoryRef& ref, const Bundle& bundle,
                    const Verification& verification, std::stop_token stop) {
  const Limits& limits = verification.limits;
  CW_RETURN_IF_ERROR(CheckBundle(bundle.manifest, bundle.config, limits));
  DiscardedFiles nothing;
  std::vector<int64_t> all(static_cast<size_t>(FrameCount(bundle.config)));
  std::iota(all.begin(), all.end(), 0);
  MemberStream members(bundle.config, all, {.limits = limits});
  TarHasher tars(bundle.config);
  FrameStream frames(bundle.config, all, DefaultThreads(), [&](const RawFrame& frame) {
    CW_RETURN_IF_ERROR(members.Handle(frame, nothing));
    CW_RETURN_IF_ERROR(frame.AwaitEarlier());
    tars.Update(frame);
    return absl::OkStatus();
  });
  HashingSink hashed(frames);
  ProgressSink counted(hashed, verification.on_progress, LayerBytes(bundle.manifest));
  for (const Descriptor& layer : bundle.manifest.layers) {
    CW_RETURN_IF_ERROR(ref.store.ReadBlob(
        ref.repository, {.digest = layer.digest, .bytes = layer.bytes}, counted, stop));
    if (hashed.Finish() != layer.digest) {
      return DigestMismatch("a layer", layer.digest);
    }
  }
  CW_RETURN_IF_ERROR(frames.Finish());
  CW_RETURN_IF_ERROR(members.Finish());
  return tars.Check();
}

absl::StatusOr<CopyReport> CopyBundle(const RepositoryRef& from, const RepositoryRef& to,
                                      const Bundle& bundle, const std::string& tag,
                                      std::stop_token stop) {
  CopyReport report;
  for (const Descriptor& layer : bundle.manifest.layers) {
    CW_RETURN_IF_ERROR(CopyBlob(from, to, layer, report, stop));
  }
  CW_RETURN_IF_ERROR(CopyBlob(from, to, bundle.manifest.config, report, stop));
  CW_ASSIGN_OR_RETURN(const std::string manifest,
                      from.store.ReadManifest(from.repository, bundle.digest, stop));
  CW_RETURN_IF_ERROR(to.store.WriteManifest(to.repository, manifest, tag, stop).status());
  return report;
}

}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/packer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/frame_codec.h"
#include "lib/bundle/members.h"
#include "lib/bundle/tar.h"

namespace cachewarm::bundle {
namespace {

constexpr unsigned kFileMode = 0444;
constexpr unsigned kDirectoryMode = 0755;
constexpr size_t kKindBytesMax = 64;
// A frame holds at least the headers of a member with the longest path and some content.
constexpr int64_t kFrameBytesMin = 8 * kTarBlockBytes;

// Collects raw tar bytes and lets go of them as frames.
class FrameCutter {
 public:
  FrameCutter(const PackOptions& options, Sink& layer)
      : frame_bytes_(static_cast<size_t>(options.frame_bytes)),
        writer_(options.level),
        layer_(layer) {}

  // Room left before the frame is full.
  size_t Room() const { return frame_bytes_ - std::min(frame_bytes_, raw_.size()); }
  bool Fits(int64_t bytes) const { return static_cast<size_t>(bytes) <= Room(); }
  int64_t frame() const { return static_cast<int64_t>(index_.frames.size()); }

  void Append(std::string_view bytes) { raw_.append(bytes); }
  void Pad(int64_t bytes) { raw_.append(static_cast<size_t>(bytes), '\0'); }

  // Reads at most `left`, and at most what fits, straight into the frame; what it read.
  absl::StatusOr<std::string_view> Fill(Source& source, int64_t left) {
    const size_t start = raw_.size();
    raw_.resize(start + std::min<size_t>(Room(), static_cast<size_t>(left)));
    const auto got = source.Read(std::span(raw_).subspan(start));
    raw_.resize(start + (got.ok() ? *got : 0));
    if (!got.ok()) {
      return got.status();
    }
    return std::string_view(raw_).substr(start);
  }

  // What was collected becomes a frame of its own.
  absl::Status Cut() {
    if (raw_.empty()) {
      return absl::OkStatus();
    }
    CW_RETURN_IF_ERROR(writer_.Compress(raw_, packed_));
    index_.frames.push_back({.offset = offset_,
                             .bytes = static_cast<int64_t>(packed_.size()),
                             .raw_bytes = static_cast<int64_t>(raw_.size()),
                             .digest = DigestOf(packed_)});
    raw_hash_.Update(raw_);
    layer_hash_.Update(packed_);
    offset_ += static_cast<int64_t>(packed_.size());
    raw_.clear();
    return layer_.Write(packed_);
  }

  absl::Status End() {
    CW_RETURN_IF_ERROR(Cut());
    // In a frame of its own, so that every frame before it holds members only.
    Append(TarEnd());
    CW_RETURN_IF_ERROR(Cut());
    index_.diff_id = raw_hash_.Finish();
    blob_ = {
        .media_type = std::string(kLayerType), .digest = layer_hash_.Finish(), .bytes = offset_};
    return absl::OkStatus();
  }

  LayerIndex& index() { return index_; }
  const Descriptor& blob() const { return blob_; }

 private:
  const size_t frame_bytes_;
  FrameWriter writer_;
  Sink& layer_;
  std::string raw_;
  std::string packed_;
  int64_t offset_ = 0;
  Sha256 raw_hash_;
  Sha256 layer_hash_;
  LayerIndex index_;
  Descriptor blob_;
};

absl::Status CheckFile(const PackFile& file, const Limits& limits) {
  CW_RETURN_IF_ERROR(CheckMember({.path = file.path,
                                  .type = MemberType::kFile,
                                  .bytes = file.bytes,
                                  .mtime_ns = file.mtime_ns,
                                  .mode = kFileMode},
                                 limits));
  if (file.kind.empty() || file.kind.size() > kKindBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\": its kind is empty or longer than {} bytes", file.path, kKindBytesMax));
  }
  if (file.mtime_ns < 0) {
    return absl::InvalidArgumentError(fmt::format("\"{}\": its mtime is before 1970", file.path));
  }
  return absl::OkStatus();
}

// Sorts the files and makes sure that they are a tree.
absl::StatusOr<std::vector<Entry>> Arrange(std::vector<PackFile>& files, const Limits& limits) {
  if (files.empty()) {
    return absl::InvalidArgumentError("there is no file to pack");
  }
  std::sort(files.begin(), files.end(),
            [](const PackFile& a, const PackFile& b) { return a.path < b.path; });
  std::vector<Entry> entries;
  entries.reserve(files.size());
  Totals totals;
  for (const PackFile& file : files) {
    CW_RETURN_IF_ERROR(CheckFile(file, limits));
    if (!entries.empty() && entries.back().path == file.path) {
      return absl::InvalidArgumentError(fmt::format("\"{}\" is there twice", file.path));
    }
    entries.push_back(
        {.path = file.path, .kind = file.kind, .bytes = file.bytes, .mtime_ns = file.mtime_ns});
    totals.entries += 1;
    totals.raw_bytes += file.bytes;
    totals.packed_bytes = totals.raw_bytes;
    CW_RETURN_IF_ERROR(CheckTotals(totals, limits));
  }
  const auto directories = ImpliedDirectories(entries);
  for (const Entry& entry : entries) {
    if (directories.contains(entry.path)) {
      return absl::InvalidArgumentError(
          fmt::format("\"{}\" is a file and a directory at once", entry.path));
    }
  }
  return entries;
}

absl::Status AddDirectories(const std::vector<Entry>& entries, FrameCutter& cutter) {
  for (const std::string& path : ImpliedDirectories(entries)) {
    CW_ASSIGN_OR_RETURN(
        const std::string header,
        TarHeader({.path = path, .type = MemberType::kDirectory, .mode = kDirectoryMode}));
    if (!cutter.Fits(static_cast<int64_t>(header.size()))) {
      CW_RETURN_IF_ERROR(cutter.Cut());
    }
    cutter.Append(header);
  }
  return absl::OkStatus();
}

absl::Status ChangedWhileRead(const PackFile& file) {
  return absl::AbortedError(fmt::format(
      "\"{}\" is not {} bytes long any more: it changed while it was read", file.path, file.bytes));
}

// Streams the content into as many frames as it takes.
absl::Status AddContent(const PackFile& file, Entry& entry, FrameCutter& cutter) {
  CW_ASSIGN_OR_RETURN(const std::unique_ptr<Source> source, file.open());
  Sha256 hash;
  for (int64_t left = file.bytes; left > 0;) {
    if (cutter.Room() == 0) {
      CW_RETURN_IF_ERROR(cutter.Cut());
    }
    CW_ASSIGN_OR_RETURN(const std::string_view content, cutter.Fill(*source, left));
    if (content.empty()) {
      return ChangedWhileRead(file);
    }
    hash.Update(content);
    left -= static_cast<int64_t>(content.size());
  }
  char beyond = 0;
  CW_ASSIGN_OR_RETURN(const size_t more, source->Read({&beyond, 1}));
  if (more != 0) {
    return ChangedWhileRead(file);
  }
  entry.digest = hash.Finish();
  return absl::OkStatus();
}

absl::Status AddFile(const PackFile& file, Entry& entry, FrameCutter& cutter) {
  CW_ASSIGN_OR_RETURN(const std::string header, TarHeader({.path = file.path,
                                                           .type = MemberType::kFile,
                                                           .bytes = file.bytes,
                                                           .mtime_ns = file.mtime_ns,
                                                           .mode = kFileMode}));
  const int64_t padded = PaddedToBlock(file.bytes);
  if (!cutter.Fits(static_cast<int64_t>(header.size()) + padded)) {
    CW_RETURN_IF_ERROR(cutter.Cut());
  }
  entry.frame = cutter.frame();
  cutter.Append(header);
  CW_RETURN_IF_ERROR(AddContent(file, entry, cutter));
  cutter.Pad(padded - file.bytes);
  // A member that spans frames is alone in them.
  return entry.frame == cutter.frame() ? absl::OkStatus() : cutter.Cut();
}

absl::StatusOr<Packed> Describe(Config config, const Descriptor& layer) {
  Packed packed{.config = std::move(config)};
  CW_ASSIGN_OR_RETURN(packed.config_text, WriteConfig(packed.config));
  packed.manifest = {.config = {.media_type = std::string(kConfigType),
                                .digest = DigestOf(packed.config_text),
                                .bytes = static_cast<int64_t>(packed.config_text.size())},
                     .layers = {layer}};
  CW_ASSIGN_OR_RETURN(packed.manifest_text, WriteManifest(packed.manifest));
  packed.digest = DigestOf(packed.manifest_text);
  return packed;
}

}  // namespace

absl::StatusOr<Packed> Pack(std::vector<PackFile> files, const Facts& facts,
                            const PackOptions& options, Sink& layer, std::stop_token stop) {
  if (options.frame_bytes < kFrameBytesMin || options.frame_bytes % kTarBlockBytes != 0 ||
      options.frame_bytes > options.limits.frame_raw_bytes_max) {
    return absl::InvalidArgumentError(
        fmt::format("frame_bytes: {} is not a multiple of {} within {} and {}", options.frame_bytes,
                    kTarBlockBytes, kFrameBytesMin, options.limits.frame_raw_bytes_max));
  }
  Config config{.facts = facts};
  CW_ASSIGN_OR_RETURN(config.entries, Arrange(files, options.limits));
  FrameCutter cutter(options, layer);
  CW_RETURN_IF_ERROR(AddDirectories(config.entries, cutter));
  for (size_t i = 0; i < files.size(); ++i) {
    if (stop.stop_requested()) {
      return absl::CancelledError("packing was stopped");
    }
    CW_RETURN_IF_ERROR(AddFile(files[i], config.entries[i], cutter));
  }
  CW_RETURN_IF_ERROR(cutter.End());
  config.layers.push_back(std::move(cutter.index()));
  return Describe(std::move(config), cutter.blob());
}

}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/unpacker.h"

#include <deque>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/frame_codec.h"
#include "lib/bundle/unpack/flusher.h"
#include "lib/bundle/unpack/frames.h"
#include "lib/bundle/unpack/members.h"
#include "lib/bundle/unpack/tree_files.h"

namespace cachewarm::bundle {

class Unpacker::Progress {
 public:
  Progress(const Config& config, const Manifest& manifest, const fs::Dir& staging,
           UnpackOptions options)
      : config_(config),
        manifest_(manifest),
        staging_(staging),
        options_(FlushFiles(std::move(options))) {}

  absl::Status Start() {
    CW_RETURN_IF_ERROR(CheckBundle(manifest_, config_, options_.limits));
    if (options_.make_directories) {
      CW_RETURN_IF_ERROR(MakeDirectories(config_, staging_, options_));
    }
    const std::vector<int64_t> needed = NeededFrames(config_, options_.present);
    runs_ = RunsOf(config_, needed);
    members_.emplace(config_, needed,
                     MemberChecks{.limits = options_.limits, .contents = options_.check_contents});
    frames_.emplace(config_, needed, options_.threads,
                    [this](const RawFrame& frame) { return Handle(frame); });
    for (int worker = 0; worker < frames_->threads(); ++worker) {
      files_.emplace_back(staging_, options_);
    }
    return absl::OkStatus();
  }

  const std::vector<FrameRun>& runs() const { return runs_; }

  absl::Status Write(std::string_view bytes) { return frames_->Write(bytes); }

  absl::Status Finish() {
    CW_RETURN_IF_ERROR(frames_->Finish());
    CW_RETURN_IF_ERROR(members_->Finish());
    return options_.sync ? staging_.SyncFileSystem() : absl::OkStatus();
  }

 private:
  absl::Status Handle(const RawFrame& frame) {
    return members_->Handle(frame, files_[frame.worker]);
  }

  // Returns `options` with the start of the write-back added to on_file.
  UnpackOptions FlushFiles(UnpackOptions options) {
    options.on_file = [this, on_file = std::move(options.on_file)](const Entry& entry,
                                                                   const fs::Fd& file) {
      absl::Status done = on_file ? on_file(entry, file) : absl::OkStatus();
      flusher_.Add(file);
      return done;
    };
    return options;
  }

  Flusher flusher_;  // declared before options_, which uses it
  const Config& config_;
  const Manifest& manifest_;
  const fs::Dir& staging_;
  const UnpackOptions options_;
  std::vector<FrameRun> runs_;
  std::optional<MemberStream> members_;
  std::deque<TreeFiles> files_;        // by worker
  std::optional<FrameStream> frames_;  // declared last: its workers use the other members
};

Unpacker::Unpacker(const Config& config, const Manifest& manifest, const fs::Dir& staging,
                   UnpackOptions options)
    : progress_(std::make_unique<Progress>(config, manifest, staging, std::move(options))) {}

Unpacker::~Unpacker() = default;

absl::Status Unpacker::Start() {
  return progress_->Start();
}

const std::vector<FrameRun>& Unpacker::runs() const {
  return progress_->runs();
}

absl::Status Unpacker::Write(std::string_view bytes) {
  return progress_->Write(bytes);
}

absl::Status Unpacker::Finish() {
  return progress_->Finish();
}

namespace {

// Checks the size of a frame against the limit, because a worker thread must hold a whole frame in
// memory to verify it.
absl::Status CheckFrameSize(const Frame& frame, size_t layer, const Limits& limits) {
  if (frame.raw_bytes > limits.frame_raw_bytes_max) {
    return absl::InvalidArgumentError(fmt::format(
        "the bundle is refused: a frame of layer {} has rawSize {} in the index, more than {}",
        layer, frame.raw_bytes, limits.frame_raw_bytes_max));
  }
  if (frame.bytes > static_cast<int64_t>(FrameBytesMax(static_cast<size_t>(frame.raw_bytes)))) {
    return absl::InvalidArgumentError(
        fmt::format("the bundle is refused: a frame of layer {} takes {} bytes, more than zstd "
                    "needs for its {} bytes of content",
                    layer, frame.bytes, frame.raw_bytes));
  }
  return absl::OkStatus();
}

absl::Status CheckIndex(const LayerIndex& index, const Descriptor& blob, size_t layer,
                        const Limits& limits) {
  const Frame& last = index.frames.back();
  if (last.offset + last.bytes != blob.bytes) {
    return absl::InvalidArgumentError(
        fmt::format("the bundle is refused: the frames of layer {} cover {} of its {} bytes", layer,
                    last.offset + last.bytes, blob.bytes));
  }
  for (const Frame& frame : index.frames) {
    CW_RETURN_IF_ERROR(CheckFrameSize(frame, layer, limits));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckBundle(const Manifest& manifest, const Config& config, const Limits& limits) {
  if (manifest.layers.size() != config.layers.size()) {
    return absl::InvalidArgumentError(
        fmt::format("the bundle is refused: {} layers in the manifest, {} in the config",
                    manifest.layers.size(), config.layers.size()));
  }
  for (size_t i = 0; i < config.layers.size(); ++i) {
    CW_RETURN_IF_ERROR(CheckIndex(config.layers[i], manifest.layers[i], i, limits));
  }
  return CheckTotals({.entries = static_cast<int64_t>(config.entries.size()),
                      .raw_bytes = RawBytes(config),
                      .frame_bytes = FrameBytes(config),
                      .packed_bytes = PackedBytes(manifest)},
                     limits);
}

}  // namespace cachewarm::bundle

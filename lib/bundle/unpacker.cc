// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/unpacker.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/frames.h"
#include "lib/bundle/members.h"
#include "lib/fs/error.h"
#include "lib/fs/file.h"

namespace cachewarm::bundle {
namespace {

constexpr mode_t kPlainFileMode = 0444;
constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

absl::Status SetMtime(const fs::Fd& file, int64_t mtime_ns) {
  const timespec times[2] = {
      {.tv_sec = 0, .tv_nsec = UTIME_OMIT},
      {.tv_sec = mtime_ns / kNanosecondsPerSecond, .tv_nsec = mtime_ns % kNanosecondsPerSecond}};
  return ::futimens(file.get(), &times[0]) == 0 ? absl::OkStatus()
                                                : fs::ErrnoStatus(errno, "futimens");
}

// Writes members as files below a directory.
class TreeTarget : public MemberTarget {
 public:
  TreeTarget(const fs::Dir& staging, const UnpackOptions& options)
      : staging_(staging), options_(options) {}

  absl::Status Begin(const Entry& entry) override {
    entry_ = &entry;
    auto file = staging_.CreateFile(entry.path, ModeOf(entry));
    skipping_ = absl::IsAlreadyExists(file.status()) && options_.keep_existing;
    if (skipping_) {
      return CheckExisting(entry);
    }
    CW_RETURN_IF_ERROR(file.status());
    file_ = *std::move(file);
    return absl::OkStatus();
  }

  absl::Status Write(std::string_view bytes) override {
    return skipping_ ? absl::OkStatus() : Annotate(fs::WriteAll(file_, bytes), entry_->path);
  }

  absl::Status End() override {
    if (skipping_) {
      return absl::OkStatus();
    }
    const fs::Fd file = std::move(file_);
    return entry_->mtime_ns == 0 ? absl::OkStatus() : SetMtime(file, entry_->mtime_ns);
  }

 private:
  mode_t ModeOf(const Entry& entry) const {
    return options_.mode_of_kind ? options_.mode_of_kind(entry.kind) : kPlainFileMode;
  }

  absl::Status CheckExisting(const Entry& entry) const {
    CW_ASSIGN_OR_RETURN(const fs::FileStat found, staging_.Stat(entry.path));
    return found.type == fs::FileType::kFile
               ? absl::OkStatus()
               : absl::AlreadyExistsError(fmt::format(
                     "\"{}\" is a directory in another bundle of this tree", entry.path));
  }

  const fs::Dir& staging_;
  const UnpackOptions& options_;
  const Entry* entry_ = nullptr;
  fs::Fd file_;
  bool skipping_ = false;
};

}  // namespace

class Unpacker::Progress {
 public:
  Progress(const Config& config, const Manifest& manifest, const fs::Dir& staging,
           UnpackOptions options)
      : config_(config),
        manifest_(manifest),
        staging_(staging),
        options_(std::move(options)),
        target_(staging_, options_),
        members_(config, options_.limits, target_),
        frames_(config, [this](int64_t index, std::string_view raw) {
          return members_.Frame(index, raw);
        }) {}

  absl::Status Start() {
    CW_RETURN_IF_ERROR(CheckBundle(manifest_, config_, options_.limits));
    for (const std::string& directory : ImpliedDirectories(config_.entries)) {
      absl::Status made = staging_.MakeDir(directory, options_.directory_mode);
      if (!made.ok() && !(absl::IsAlreadyExists(made) && options_.keep_existing)) {
        return made;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Write(std::string_view bytes) { return frames_.Write(bytes); }

  absl::Status Finish() {
    CW_RETURN_IF_ERROR(frames_.Finish());
    CW_RETURN_IF_ERROR(members_.Finish());
    return staging_.SyncFileSystem();
  }

 private:
  const Config& config_;
  const Manifest& manifest_;
  const fs::Dir& staging_;
  const UnpackOptions options_;
  TreeTarget target_;
  MemberStream members_;
  FrameStream frames_;
};

Unpacker::Unpacker(const Config& config, const Manifest& manifest, const fs::Dir& staging,
                   UnpackOptions options)
    : progress_(std::make_unique<Progress>(config, manifest, staging, std::move(options))) {}

Unpacker::~Unpacker() = default;

absl::Status Unpacker::Start() {
  return progress_->Start();
}

absl::Status Unpacker::Write(std::string_view bytes) {
  return progress_->Write(bytes);
}

absl::Status Unpacker::Finish() {
  return progress_->Finish();
}

absl::Status CheckBundle(const Manifest& manifest, const Config& config, const Limits& limits) {
  if (manifest.layers.size() != config.layers.size()) {
    return absl::InvalidArgumentError(
        fmt::format("the bundle is refused: {} layers in the manifest, {} in the config",
                    manifest.layers.size(), config.layers.size()));
  }
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const Frame& last = config.layers[i].frames.back();
    if (last.offset + last.bytes != manifest.layers[i].bytes) {
      return absl::InvalidArgumentError(
          fmt::format("the bundle is refused: the frames of layer {} cover {} of its {} bytes", i,
                      last.offset + last.bytes, manifest.layers[i].bytes));
    }
    for (const Frame& frame : config.layers[i].frames) {
      if (frame.raw_bytes > limits.frame_raw_bytes_max) {
        return absl::InvalidArgumentError(
            fmt::format("the bundle is refused: a frame of layer {} holds {} bytes, at most {}", i,
                        frame.raw_bytes, limits.frame_raw_bytes_max));
      }
    }
  }
  return CheckTotals({.entries = static_cast<int64_t>(config.entries.size()),
                      .raw_bytes = RawBytes(config),
                      .packed_bytes = PackedBytes(manifest)},
                     limits);
}

}  // namespace cachewarm::bundle

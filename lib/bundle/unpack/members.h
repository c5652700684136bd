// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"
#include "lib/bundle/policy.h"
#include "lib/bundle/tar.h"
#include "lib/bundle/unpack/frames.h"
#include "lib/bundle/unpack/new_file.h"

namespace cachewarm::bundle {

// Parses decompressed frames and holds every member against policy and entry list: the files of a
// frame must be exactly those that the list names for it, in its order, with size, mtime and
// sha256. Directories must be parents of a listed file. INVALID_ARGUMENT: refused. DATA_LOSS: the
// content is not what its digest says. Thread-safe: frames are handled in parallel, only a file
// that spans frames is written by one after the other.
class MemberStream {
 public:
  // Both must outlive it.
  MemberStream(const Config& config, const Limits& limits);

  absl::Status Handle(const RawFrame& frame, FileMaker& maker);
  // Every entry was there; after the last frame.
  absl::Status Finish() const;

 private:
  using Entries = std::span<const Entry* const>;

  // What a frame holds of a file that begins in it.
  struct Piece {
    const Entry* entry = nullptr;
    std::string_view content;

    bool IsWhole() const { return static_cast<int64_t>(content.size()) == entry->bytes; }
  };

  Entries EntriesOf(int64_t frame) const;
  absl::Status Members(const RawFrame& frame, Entries listed, FileMaker& maker);
  absl::StatusOr<std::vector<Piece>> Parse(const RawFrame& frame, Entries listed) const;
  absl::Status Rest(const RawFrame& frame, NewFile file);
  absl::Status Part(const RawFrame& frame, NewFile file);
  std::optional<NewFile> TakeOpen(int64_t frame);

  const Limits& limits_;
  std::vector<const Entry*> by_frame_;  // entries by frame, within one by path
  std::set<std::string, std::less<>> directories_;
  std::atomic<size_t> whole_files_ = 0;

  mutable std::mutex mutex_;
  std::map<int64_t, NewFile> open_;  // by the frame in which they do not end yet
};

}  // namespace cachewarm::bundle

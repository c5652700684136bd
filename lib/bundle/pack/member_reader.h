// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/base/digest.h"
#include "lib/bundle/pack/tree.h"
#include "lib/bundle/stream.h"

namespace cachewarm::bundle {

// Reads the bytes of one tar member in order: header, content, zeros up to the next block. ABORTED
// if the size of the file differs from PackFile::bytes. Not thread-safe.
class MemberReader {
 public:
  // `tree` must outlive this object.
  MemberReader(const PackTree& tree, size_t member) : tree_(tree), member_(member) {}

  // Fills all of `piece` with the next bytes of the member, and with zeros after its last block.
  // Returns the part of `piece` that is content of the file.
  absl::StatusOr<std::string_view> Read(std::span<char> piece);

 private:
  absl::Status Begin();
  absl::Status Content(std::span<char> piece);
  absl::Status EndContent();

  const PackTree& tree_;
  const size_t member_;
  bool begun_ = false;
  std::string header_;
  size_t header_done_ = 0;
  std::unique_ptr<Source> source_;  // set until the content ends
  int64_t left_bytes_ = 0;          // content bytes that are not read yet
};

// Reads a file that is larger than a frame. Shared by the worker threads that make its frames.
// Thread-safe.
class SharedMember {
 public:
  // `entry` is the entry of the file; its digest is set when the last byte has been read.
  SharedMember(const PackTree& tree, size_t member, Entry& entry)
      : reader_(tree, member), entry_(entry), left_bytes_(entry.bytes) {}

  // Fills `piece` with the bytes from offset `from`. Blocks until other threads have read all bytes
  // before that offset. After an error every call returns that error.
  absl::Status Read(int64_t from, std::span<char> piece);

 private:
  absl::Status ReadNext(std::span<char> piece);

  std::mutex mutex_;
  std::condition_variable read_;
  MemberReader reader_;
  Entry& entry_;
  int64_t done_bytes_ = 0;
  int64_t left_bytes_;  // content bytes that are not read yet
  Sha256 hash_;
  absl::Status status_;
};

}  // namespace cachewarm::bundle

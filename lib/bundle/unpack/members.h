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

struct MemberChecks {
  Limits limits;
  // The sha256 of every file against the entry list, beside that of its frame. Of older layers it
  // always is: who made the list did not make them.
  bool contents = true;
};

// Parses decompressed frames and holds every member against policy and entry list: the files of a
// frame must be those that the list names for it, in its order, with size, mtime and, if asked
// for, sha256; a hard link stands for the content of a file before it in its frame. In the newest
// layer there is nothing else but parents of listed files and whiteouts
// (OCI image-spec 1.1, layer.md: what says to others that a file of an older layer is gone); older
// layers may hold what the bundle has no more, which is skipped over. INVALID_ARGUMENT: refused.
// DATA_LOSS: the content is not what its digest says. Thread-safe: frames are handled in parallel,
// only a file that spans frames is written by one after the other.
class MemberStream {
 public:
  // `config` must outlive it. `needed`: the frames that it will be given.
  MemberStream(const Config& config, const std::vector<int64_t>& needed,
               const MemberChecks& checks);

  absl::Status Handle(const RawFrame& frame, FileMaker& maker);
  // Every entry of those frames was there; after the last frame.
  absl::Status Finish() const;

 private:
  using Entries = std::span<const Entry* const>;

  // What a frame holds of a file that begins in it.
  struct FilePart {
    const Entry* entry = nullptr;
    std::string_view content;

    bool IsWhole() const { return static_cast<int64_t>(content.size()) == entry->bytes; }
  };

  // What has been parsed of a frame. `skipped`: files that the bundle has no more, but links may
  // name.
  struct Parsed {
    std::vector<FilePart> pieces;
    std::map<std::string, std::string_view, std::less<>> skipped;
  };

  static absl::StatusOr<std::string_view> LinkedContent(const Member& link, const Entry& entry,
                                                        const Parsed& parsed);
  absl::Status SkipMember(const Member& member, const RawFrame& frame, TarReader& reader,
                          Parsed& parsed) const;
  Entries EntriesOf(int64_t frame) const;
  absl::Status CheckDirectory(const Member& member, const RawFrame& frame) const;
  bool ChecksContents(const RawFrame& frame) const;
  bool MayHoldUnlisted(const Member& member, const RawFrame& frame) const;
  absl::Status HandleMembers(const RawFrame& frame, Entries listed, FileMaker& maker);
  absl::StatusOr<std::vector<FilePart>> Parse(const RawFrame& frame, Entries listed) const;
  absl::Status HandleRest(const RawFrame& frame, NewFile file, FileMaker& maker);
  absl::Status EndPart(const RawFrame& frame, NewFile file, FileMaker& maker);
  std::optional<NewFile> TakeOpen(int64_t frame);

  const MemberChecks checks_;
  const int64_t newest_;                // the first frame of the newest layer
  std::vector<const Entry*> by_frame_;  // entries by frame, within one by path
  std::set<std::string, std::less<>> directories_;
  size_t expected_files_ = 0;
  std::atomic<size_t> whole_files_ = 0;

  mutable std::mutex mutex_;
  std::map<int64_t, NewFile> open_;  // by the frame in which they do not end yet
};

}  // namespace cachewarm::bundle

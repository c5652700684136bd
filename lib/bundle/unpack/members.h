// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
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
#include "lib/bundle/unpack/needed.h"
#include "lib/bundle/unpack/new_file.h"

namespace cachewarm::bundle {

struct MemberChecks {
  Limits limits;
  // Compares the sha256 of every file with the entry list. If false, compares only the files of
  // older layers: the entry list and an older layer may have different writers.
  bool contents = true;
};

// Parses decompressed frames, checks every tar member and writes the files. Rules:
//   - The files that the entry list has for a frame must begin in that frame, in the order of the
//     list, with the listed size and mtime, and with the listed sha256 if `checks` requires it.
//   - A hard link must refer to an earlier file of the same frame, whose content is then copied.
//   - Besides listed files, the newest layer may contain only parent directories of listed files
//     and, if there are older layers, empty whiteouts (OCI image-spec 1.1, layer.md).
//   - Older layers may also contain files that the bundle no longer has. These are skipped.
//
// INVALID_ARGUMENT if policy.h or the entry list does not allow a member, DATA_LOSS if content does
// not match its digest. Thread-safe: frames are handled concurrently and in any order. Only the
// sha256 of a file that spans frames is computed in the order of its frames.
class MemberStream {
 public:
  // `config` must outlive this object. `needed`: the indices of the frames that will be passed to
  // Handle().
  MemberStream(const Config& config, const std::vector<int64_t>& needed,
               const MemberChecks& checks);

  absl::Status Handle(const RawFrame& frame, FileMaker& maker);
  // Call after the last frame. DATA_LOSS if the needed frames lack a listed file.
  absl::Status Finish() const;

 private:
  using Entries = std::span<const Entry* const>;

  // The part of a file that is in the frame in which the file begins.
  struct FilePart {
    const Entry* entry = nullptr;
    std::string_view content;

    bool IsWhole() const { return static_cast<int64_t>(content.size()) == entry->bytes; }
  };

  // The parsed members of a frame. `skipped` has the content of files that the bundle no longer
  // has: hard links of the frame may refer to them.
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
  // The part of a large file that a frame holds.
  struct LargePart {
    PartedFile* file = nullptr;
    int64_t offset = 0;       // in the content
    int64_t next_offset = 0;  // of the next part
  };

  void AddLargeFile(const LargeFile& file);
  absl::Status BeginLarge(const RawFrame& frame, const FilePart& piece, FileMaker& maker);
  absl::Status ContinueLarge(const RawFrame& frame, const LargePart& part, FileMaker& maker);
  absl::Status WritePart(const RawFrame& frame, const LargePart& part, std::string_view content,
                         FileMaker& maker);

  const MemberChecks checks_;
  const int64_t newest_;                // index of the first frame of the newest layer
  std::vector<const Entry*> by_frame_;  // sorted by frame, and by path within a frame
  std::set<std::string, std::less<>> directories_;
  size_t expected_files_ = 0;
  std::atomic<size_t> whole_files_ = 0;

  std::deque<PartedFile> large_files_;
  std::map<int64_t, LargePart> large_parts_;  // by frame
};

}  // namespace cachewarm::bundle

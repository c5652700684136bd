// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/digest.h"
#include "lib/bundle/format.h"
#include "lib/bundle/policy.h"
#include "lib/bundle/tar.h"

namespace cachewarm::bundle {

// Takes the files of a bundle one after the other.
class MemberTarget {
 public:
  MemberTarget() = default;
  MemberTarget(const MemberTarget&) = delete;
  MemberTarget& operator=(const MemberTarget&) = delete;
  virtual ~MemberTarget() = default;

  virtual absl::Status Begin(const Entry& entry) = 0;
  virtual absl::Status Write(std::string_view bytes) = 0;
  // The whole content came and has the sha256 of the entry.
  virtual absl::Status End() = 0;
};

// Parses decompressed frames and holds every member against policy and entry list: the files of a
// frame must be exactly those that the list names for it, in its order, with size, mtime and
// sha256. Directories must be parents of a listed file. INVALID_ARGUMENT: refused. DATA_LOSS: the
// content is not what its digest says. Not thread-safe.
class MemberStream {
 public:
  // All three must outlive it.
  MemberStream(const Config& config, const Limits& limits, MemberTarget& target);

  absl::Status Frame(int64_t index, std::string_view raw);
  // Every entry was there.
  absl::Status Finish() const;

 private:
  absl::Status File(const Member& member, const Entry& entry, TarReader& reader);
  absl::Status Rest(std::string_view raw);
  absl::Status Feed(std::string_view content);
  absl::Status EndFile();

  const Limits& limits_;
  MemberTarget& target_;
  std::vector<const Entry*> by_frame_;  // entries by frame, within one by path
  std::set<std::string, std::less<>> directories_;
  size_t next_ = 0;  // in by_frame_

  const Entry* open_ = nullptr;  // began, more of it is to come
  int64_t left_bytes_ = 0;
  std::optional<Sha256> hash_;
};

// Every directory that the paths of `entries` imply, parents before children.
std::set<std::string, std::less<>> ImpliedDirectories(const std::vector<Entry>& entries);

}  // namespace cachewarm::bundle

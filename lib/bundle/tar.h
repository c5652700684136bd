// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/bundle/policy.h"

// tar members (POSIX.1-2001 pax) in memory; the only place that knows the library is
// platform/libarchive.
namespace cachewarm::bundle {

inline constexpr int64_t kTarBlockBytes = 512;

// `bytes` rounded up to whole tar blocks.
constexpr int64_t PaddedToBlock(int64_t bytes) {
  return (bytes + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes;
}

// The header blocks of a file, directory or hard link, owner 0:0. Long paths and nanoseconds take a
// pax header. The content, padded with zeros to whole blocks, is the caller's. Deterministic.
absl::StatusOr<std::string> TarHeader(const Member& member);

// The two zero blocks that end an archive.
std::string TarEnd();

// Reads members out of a piece of an archive that starts at a member. The piece must outlive the
// reader. Not thread-safe.
class TarReader {
 public:
  explicit TarReader(std::string_view piece);
  TarReader(TarReader&&) noexcept;
  TarReader& operator=(TarReader&&) noexcept;
  ~TarReader();

  // The next member, nullopt at the end of the piece or of the archive. DATA_LOSS when the piece
  // is malformed.
  absl::StatusOr<std::optional<Member>> Next();
  // The member's content in one go: all of it, or as much as the piece holds, where it lies in the
  // piece. Once a member.
  absl::StatusOr<std::string_view> Content();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cachewarm::bundle

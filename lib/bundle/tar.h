// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/bundle/policy.h"

// Reads and writes tar members (POSIX.1-2001 pax) in memory. Only platform/libarchive includes
// libarchive's headers.
namespace cachewarm::bundle {

inline constexpr int64_t kTarBlockBytes = 512;

// Returns `bytes` rounded up to whole tar blocks.
constexpr int64_t PaddedToBlock(int64_t bytes) {
  return (bytes + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes;
}

// Returns the header blocks of a file, directory or hard link with owner 0:0. Long paths and
// nanoseconds go to a pax header. The caller appends the content, padded with zeros to whole
// blocks. Deterministic.
absl::StatusOr<std::string> TarHeader(const Member& member);

// Returns the two zero blocks that end an archive.
std::string TarEnd();

// Reads the members in `piece`, a part of an archive that begins with a member's header. `piece`
// must outlive the reader. Not thread-safe.
class TarReader {
 public:
  explicit TarReader(std::string_view piece);
  TarReader(TarReader&&) noexcept;
  TarReader& operator=(TarReader&&) noexcept;
  ~TarReader();

  // Returns the next member, nullopt at the end of the piece or of the archive. DATA_LOSS if the
  // piece is malformed.
  absl::StatusOr<std::optional<Member>> Next();
  // Returns the content of the current member as a view into the piece. If the piece ends inside
  // the content, returns only the part that is in the piece. Call at most once per member.
  absl::StatusOr<std::string_view> Content();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cachewarm::bundle

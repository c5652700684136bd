// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/pack/file_digest.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::bundle {
namespace {

constexpr int64_t kPieceBytesMax = 256LL << 10;

}  // namespace

absl::Status ChangedWhileRead(const PackFile& file) {
  return absl::AbortedError(fmt::format("\"{}\" changed while it was read (size before: {} bytes)",
                                        file.path, file.bytes));
}

absl::StatusOr<Digest> DigestOfFile(const PackFile& file) {
  CW_ASSIGN_OR_RETURN(const auto source, file.open());
  std::vector<char> piece(static_cast<size_t>(std::clamp<int64_t>(file.bytes, 1, kPieceBytesMax)));
  Sha256 hash;
  int64_t bytes = 0;
  while (true) {
    CW_ASSIGN_OR_RETURN(const size_t got, source->Read(piece));
    if (got == 0) {
      break;
    }
    hash.Update({piece.data(), got});
    bytes += static_cast<int64_t>(got);
  }
  if (bytes != file.bytes) {
    return ChangedWhileRead(file);
  }
  return hash.Finish();
}

}  // namespace cachewarm::bundle

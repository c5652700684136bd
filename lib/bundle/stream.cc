// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/stream.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::bundle {

absl::StatusOr<size_t> TextSource::Read(std::span<char> buffer) {
  const size_t size = std::min(buffer.size(), rest_.size());
  std::copy_n(rest_.data(), size, buffer.data());
  rest_.remove_prefix(size);
  return size;
}

absl::Status TextSink::Write(std::string_view bytes) {
  if (bytes.size() > bytes_max_ - text_.size()) {
    return absl::ResourceExhaustedError(
        fmt::format("the content is longer than {} bytes", bytes_max_));
  }
  text_.append(bytes);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Copy(Source& source, Sink& sink) {
  constexpr size_t kPieceBytes = 256U << 10U;
  std::vector<char> piece(kPieceBytes);
  int64_t total = 0;
  while (true) {
    CW_ASSIGN_OR_RETURN(const size_t size, source.Read(piece));
    if (size == 0) {
      return total;
    }
    CW_RETURN_IF_ERROR(sink.Write({piece.data(), size}));
    total += static_cast<int64_t>(size);
  }
}

}  // namespace cachewarm::bundle

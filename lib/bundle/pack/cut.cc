// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/pack/cut.h"

#include <algorithm>

#include "lib/bundle/tar.h"

namespace cachewarm::bundle {

std::vector<Cut> CutTar(const std::vector<int64_t>& member_bytes, int64_t frame_bytes) {
  std::vector<Cut> cuts;
  Cut open;
  const auto close = [&](size_t next) {
    if (open.members > 0) {
      cuts.push_back(open);
    }
    open = {.first = next};
  };
  for (size_t member = 0; member < member_bytes.size(); ++member) {
    const int64_t bytes = member_bytes[member];
    if (open.bytes + bytes > frame_bytes) {
      close(member);
    }
    if (bytes <= frame_bytes) {
      open.members += 1;
      open.bytes += bytes;
      continue;
    }
    for (int64_t from = 0; from < bytes; from += frame_bytes) {
      cuts.push_back({.first = member,
                      .members = 1,
                      .from = from,
                      .bytes = std::min(frame_bytes, bytes - from)});
    }
    close(member + 1);
  }
  close(member_bytes.size());
  // In a frame of its own, so that every frame before it holds members only.
  cuts.push_back({.first = member_bytes.size(), .bytes = int64_t{2} * kTarBlockBytes});
  return cuts;
}

}  // namespace cachewarm::bundle

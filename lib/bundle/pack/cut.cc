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
  // The zero blocks that end the archive form a separate frame, so that all other frames hold only
  // members.
  cuts.push_back({.first = member_bytes.size(), .bytes = int64_t{2} * kTarBlockBytes});
  return cuts;
}

OrderedCuts CutWithMates(const std::vector<int64_t>& member_bytes,
                         const std::vector<size_t>& frame_mate, int64_t frame_bytes) {
  // A unit is a group: a member together with the members that must be in the same frame.
  std::vector<std::vector<size_t>> units;
  std::vector<int64_t> unit_bytes;
  std::vector<size_t> unit_of(member_bytes.size());
  for (size_t member = 0; member < member_bytes.size(); ++member) {
    if (frame_mate[member] == member) {
      unit_of[member] = units.size();
      units.emplace_back();
      unit_bytes.push_back(0);
    } else {
      unit_of[member] = unit_of[frame_mate[member]];
    }
    units[unit_of[member]].push_back(member);
    unit_bytes[unit_of[member]] += member_bytes[member];
  }
  OrderedCuts out{.cuts = CutTar(unit_bytes, frame_bytes)};
  for (Cut& cut : out.cuts) {
    if (cut.from > 0) {
      cut.first = out.order.size() - 1;
      continue;
    }
    const auto begin = static_cast<std::ptrdiff_t>(out.order.size());
    for (size_t unit = cut.first; unit < cut.first + cut.members; ++unit) {
      out.order.insert(out.order.end(), units[unit].begin(), units[unit].end());
    }
    std::sort(out.order.begin() + begin, out.order.end());
    cut.first = static_cast<size_t>(begin);
    cut.members = out.order.size() - cut.first;
  }
  return out;
}

}  // namespace cachewarm::bundle

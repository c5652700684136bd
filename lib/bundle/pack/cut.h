// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// Divides a tar into frames. Pure.
namespace cachewarm::bundle {

// The part of a tar that one frame holds: whole members, or a part of one member that is larger
// than a frame.
struct Cut {
  size_t first = 0;    // index of the first member
  size_t members = 0;  // number of members; 0: the frame is the end of the archive
  int64_t from = 0;    // offset in the first member at which the frame begins
  int64_t bytes = 0;   // raw size of the frame

  friend bool operator==(const Cut&, const Cut&) = default;
};

// Divides a tar into frames. A frame holds as many whole members as fit. A member that does not fit
// into one frame is divided over several, which hold nothing else. The last frame is the end of the
// archive. `member_bytes` has the size of each member: header and padded content. These sizes and
// `frame_bytes` must be multiples of 512. The result depends only on the sizes.
std::vector<Cut> CutTar(const std::vector<int64_t>& member_bytes, int64_t frame_bytes);

// An order of the members, and the frames of the tar in that order.
struct OrderedCuts {
  std::vector<size_t> order;  // indices of members; Cut::first is a position in `order`
  std::vector<Cut> cuts;
};

// As CutTar(), but keeps every group of members within one frame. frame_mate[i] is an earlier
// member of the group of member i, or i itself if i is the first one. The caller ensures that every
// group fits into one frame. To keep a group together, the order of the members may change: it then
// ascends only within each frame. Without groups the whole order is ascending.
OrderedCuts CutWithMates(const std::vector<int64_t>& member_bytes,
                         const std::vector<size_t>& frame_mate, int64_t frame_bytes);

}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// Where a tar is cut into frames. Pure.
namespace cachewarm::bundle {

// What of a tar lies in one frame: whole members, or a part of one that is larger than a frame.
struct Cut {
  size_t first = 0;    // member
  size_t members = 0;  // none: the end of the archive
  int64_t from = 0;    // byte of the member at which the frame begins
  int64_t bytes = 0;   // raw, of the frame

  friend bool operator==(const Cut&, const Cut&) = default;
};

// `member_bytes`: header and padded content of each, multiples of 512 as `frame_bytes` is. A frame
// takes as many members as fit; a larger member has frames of its own; the end of the archive is
// the last frame. Depends on the sizes only, so that the frames are the same whoever makes them.
std::vector<Cut> CutTar(const std::vector<int64_t>& member_bytes, int64_t frame_bytes);

// A tar whose members are put into an order before it is cut.
struct OrderedCuts {
  std::vector<size_t> order;  // members; Cut::first and Cut::members are positions in it
  std::vector<Cut> cuts;
};

// `frame_mate`, by member: an earlier one that must lie in the same frame, or itself. Members that
// must, and their mates, are together no larger than a frame. Within a frame members lie in the
// order of their numbers, and where none has a mate the order is that of the numbers throughout.
OrderedCuts CutWithMates(const std::vector<int64_t>& member_bytes,
                         const std::vector<size_t>& frame_mate, int64_t frame_bytes);

}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/digest.h"

// What is damage in a tree that pods write into, and what is an engine's own work. Pure.
namespace cachewarm::agent {

// A file of a bundle and what stands in its place now.
struct FileChange {
  bool right = false;      // its content has the digest of the bundle's entry list
  bool same_file = false;  // the inode that the agent made, with the mode that it gave
  bool written = false;    // size or mtime are not those of then
  bool writable = false;   // engines rewrite files of this kind in place (lib/caches)
  bool truncated = false;  // caches::CheckWhole() says DATA_LOSS
};

enum class FileState {
  kIntact,  // the bundle's bytes
  kModifiedByEngine,  // an engine's own file: no longer ours to judge
  kDamaged,  // no engine did this, or it crashes whoever maps it
};

// Engines put new files in the place of old ones by rename, or remove and make them again: theirs.
// In place they write only files of some kinds; everything else that changed inside its inode was
// done by no engine, whatever the kind when not even the mtime moved.
FileState EvaluateFile(const FileChange& change);

// Why a change that was judged kDamaged is damage, after "it ...".
std::string_view DescribeDamage(const FileChange& change);

// A tree that must not be shown any more, and the first thing that was found wrong with it. It
// stays where it is: pods may have it mounted.
struct DamagedTree {
  WallTime at{};
  std::string path;
  std::string message;
  Digest digest;           // that the file should have
  uint64_t inode = 0;      // 0: there is no such file
  bool untouched = false;  // nobody wrote it since it was extracted
  friend bool operator==(const DamagedTree&, const DamagedTree&) = default;
};

// "inductor/x.so: its content changed", for people.
std::string DescribeDamage(const DamagedTree& tree);

// True when `found` was seen in one of `earlier` already, in another inode, and nobody wrote either
// of the two: the frames of the bundle were right, so its entry list names other bytes than it
// holds, and every further tree would end the same way.
bool IsIndexInconsistent(const DamagedTree& found,
                         const std::map<std::string, DamagedTree>& earlier);

}  // namespace cachewarm::agent

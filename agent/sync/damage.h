// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/digest.h"

// Distinguishes damage in a tree that pods write into from changes made by engines. Pure.
namespace cachewarm::agent {

// A file of a bundle, compared with the file that is now at its path in the tree.
struct FileChange {
  bool right = false;      // the content has the digest in the bundle's entry list
  bool same_file = false;  // inode and mode are unchanged since the agent created the file
  bool written = false;    // size or mtime changed
  bool writable = false;   // engines rewrite files of this kind in place (lib/caches)
  bool truncated = false;  // caches::CheckWhole() returns DATA_LOSS
};

enum class FileState {
  kIntact,            // the bytes of the bundle
  kModifiedByEngine,  // written by an engine; not checked any further
  kDamaged,           // not changed by an engine, or crashes its reader
};

// Compilers replace files (rename, or unlink and create) and modify only files marked `writable` in
// place. Any other in-place change, and any content change with an unchanged mtime, is damage.
FileState EvaluateFile(const FileChange& change);

// Describes why a kDamaged change is damage. The text is to follow "<path>: ".
std::string_view DescribeDamage(const FileChange& change);

// A tree that must not be activated again, and the first damage found in it. The tree is not
// removed, because pods may have it mounted.
struct DamagedTree {
  WallTime at{};
  std::string path;
  std::string message;
  Digest digest;           // expected digest of the damaged file
  uint64_t inode = 0;      // inode of the damaged file; 0: it does not exist
  bool untouched = false;  // the file was not written since it was extracted
  friend bool operator==(const DamagedTree&, const DamagedTree&) = default;
};

// Returns text for users, for example "inductor/x.so: its content changed".
std::string DescribeDamage(const DamagedTree& tree);

// Returns true if one of `earlier` has the same damage in another inode and neither file was
// written: the frames of the bundle were verified, so its entry list does not match its contents,
// and every further tree would be damaged likewise.
bool IsIndexInconsistent(const DamagedTree& found,
                         const std::map<std::string, DamagedTree>& earlier);

}  // namespace cachewarm::agent

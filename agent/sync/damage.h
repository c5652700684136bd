// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/base/digest.h"

// Pods write into their trees. This file distinguishes damage from changes made by engines. Pure.
namespace cachewarm::agent {

// A file of a bundle, compared with the file that is now at its path in the tree.
struct FileChange {
  bool right = false;      // the content matches the digest in the bundle's entry list
  bool same_file = false;  // inode and mode are unchanged since the agent created the file
  bool written = false;    // size or mtime changed
  bool writable = false;   // engines rewrite files of this kind in place (lib/caches)
  bool truncated = false;  // caches::CheckWhole() returns DATA_LOSS
};

enum class FileState {
  kIntact,            // has the bytes of the bundle
  kModifiedByEngine,  // written by an engine; not checked any further
  kDamaged,           // changed, but not by an engine; or truncated, which crashes its reader
};

// Compilers replace files (rename, or unlink and create) and modify only files marked `writable` in
// place. Any other in-place change, and any content change with an unchanged mtime, is damage.
FileState EvaluateFile(const FileChange& change);

// Describes why a kDamaged change is damage. The caller prepends "<path>: ".
std::string_view DescribeDamage(const FileChange& change);

// A tree that must not be activated again, and the first damage found in it. The tree is not
// removed, because pods may have it mounted.
struct DamagedTree {
  WallTime at{};
  std::string path;  // path of the damaged file in the tree; empty: the record cannot be read
  std::string message;
  Digest digest;           // expected digest of the damaged file
  uint64_t inode = 0;      // inode of the damaged file; 0: it does not exist
  bool untouched = false;  // the file was not written since it was extracted
  friend bool operator==(const DamagedTree&, const DamagedTree&) = default;
};

// Returns text for users, for example "inductor/x.so: was replaced by a truncated file".
std::string DescribeDamage(const DamagedTree& tree);

// Returns true if the bundle's entry list must be wrong: one of `earlier` has the same damage in
// another inode, and neither file was written since it was extracted. The fetch verified the
// contents of the bundle, so only the list can be wrong, and every further tree would appear
// damaged too.
bool IsIndexInconsistent(const DamagedTree& found,
                         const std::map<std::string, DamagedTree>& earlier);

}  // namespace cachewarm::agent

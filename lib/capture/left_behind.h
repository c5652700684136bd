// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "lib/api/node_cache.h"

namespace cachewarm::capture {

// Sums the files of a tree that match no cache kind, because an engine has moved its cache or
// cachewarm does not know that cache. Needs memory for 256 directories, however many there are.
class LeftBehindSum {
 public:
  // Adds a file. `path` is any path that a pod may choose.
  void Add(std::string_view path, int64_t bytes);

  // Returns the sums, and the 8 directories with the most bytes. Names a directory by its first 4
  // components, or by fewer if there would be more than 8 directories. A name that is not plain
  // UTF-8 is escaped as \xNN, and a long one is cut to 128 bytes.
  api::LeftBehind Take();

 private:
  using Directories = std::map<std::string, int64_t, std::less<>>;  // bytes by name

  void Shorten();

  int depth_ = 4;
  Directories directories_;
  int64_t files_ = 0;
  int64_t bytes_ = 0;
};

// Returns "12 files, 10.0 MB in a/b, c", for logs and messages; empty if there are no files.
std::string ToText(const api::LeftBehind& left);

}  // namespace cachewarm::capture

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace cachewarm::caches {

// A cache kind as "cachewarm caches" and docs/reference/caches.md show it.
struct KindDescription {
  std::string name;
  std::string directory;               // below /var/cache/cachewarm
  std::vector<std::string> variables;  // "NAME=VALUE", where a leading "@" is the directory
  std::vector<std::string> strict;     // variables with which the engine refuses to compile
  std::string opt_in;                  // why the kind is selected only by name; empty: by default
  std::string engine;                  // the engine that writes the files
  // How the kind was verified: the version that was run, or the source of the layout.
  std::string proof;
  std::string absolute_paths;          // absolute paths in the files or in their keys
  std::vector<std::string> rewritten;  // globs of the files whose paths are rewritten
  std::string hit;                     // the files that a hit reads
  std::string miss;                    // the files that a miss writes
  // Globs of the files that hold choices of an autotuner, below the directory.
  std::vector<std::string> autotune;
  std::string links;                  // which files may be hard-linked between generations
  std::vector<std::string> captured;  // globs below the directory; a nested kind as "DIR/: KIND"
  std::vector<std::string> batons;    // globs of locks that a killed process leaves behind
  std::vector<std::string> skipped;   // "GLOB: reason" of files that are never captured
  std::vector<std::string> versions;  // where files name the version of an engine
};

// Returns every kind, in the order of kinds/table.inc.
std::vector<KindDescription> DescribeKinds();

}  // namespace cachewarm::caches

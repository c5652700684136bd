// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

// Records what this process does to the files below a directory. lib/fs makes all such system calls
// of cachewarm; the linker redirects them (--wrap, see CMakeLists.txt).
namespace cachewarm::agent {

// A file, directory or symbolic link. Numbered in the order of appearance; 0: none. Numbers are
// never used again, unlike those of inodes.
using NodeId = int;

struct DiskNode {
  enum class Type { kFile, kDirectory, kSymlink };
  Type type = Type::kFile;
  std::string target;                   // of a symbolic link
  std::string bytes;                    // of a file when the recording began
  std::map<std::string, NodeId> names;  // of a directory when the recording began
};

struct DiskEvent {
  enum class Kind {
    kName,     // the name `name` in directory `node` leads to `target`; 0: it is removed
    kWrite,    // `bytes` were written to file `node` at `offset`
    kSync,     // fsync of file or directory `node`
    kSyncAll,  // syncfs
  };
  Kind kind = Kind::kName;
  NodeId node = 0;
  std::string name;
  NodeId target = 0;
  // Names with the same group are changed together or not at all.
  int group = 0;
  int64_t offset = 0;
  std::string bytes;
};

struct DiskLog {
  std::vector<DiskNode> nodes = {{}};  // by NodeId; the directory itself is 1
  std::vector<DiskEvent> events;
};

constexpr NodeId kRootNode = 1;

// Records from the constructor to the destructor. One at a time.
class DiskRecorder {
 public:
  // Everything below `path` counts as durable.
  explicit DiskRecorder(const std::string& path);
  DiskRecorder(const DiskRecorder&) = delete;
  DiskRecorder& operator=(const DiskRecorder&) = delete;
  ~DiskRecorder();

  // Call while no other thread changes files.
  const DiskLog& log() const;
};

}  // namespace cachewarm::agent

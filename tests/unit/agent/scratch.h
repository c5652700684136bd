// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "agent/sync/warmup_mount.h"
#include "agent/tree/root.h"
#include "agent/tree/root_layout.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// A temporary directory for one test; removed by the destructor.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "cachewarm-agent-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string path() const { return path_.string(); }
  std::filesystem::path operator/(const std::string& below) const { return path_ / below; }

  void Write(const std::string& file, const std::string& bytes) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file, std::ios::binary) << bytes;
  }
  std::string Read(const std::string& file) const {
    std::ifstream in(path_ / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool Exists(const std::string& below) const {
    return std::filesystem::exists(std::filesystem::symlink_status(path_ / below));
  }
  unsigned Mode(const std::string& below) const {
    return static_cast<unsigned>(std::filesystem::status(path_ / below).permissions());
  }

 private:
  std::filesystem::path path_;
};

// A root directory opened by the agent.
class Root : public Scratch {
 public:
  Root() : dir_(Open(path())) {}
  const fs::Dir& dir() const { return dir_; }

 private:
  static fs::Dir Open(const std::string& path) {
    absl::StatusOr<fs::Dir> dir = OpenRoot(path);
    if (!dir.ok()) {
      ADD_FAILURE() << dir.status();
      std::abort();
    }
    return *std::move(dir);
  }
  fs::Dir dir_;
};

// Returns the contents of all regular files below `path`, by relative path.
inline std::map<std::string, std::string> FilesBelow(const std::filesystem::path& path) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file() && !entry.is_symlink()) {
      std::ifstream in(entry.path(), std::ios::binary);
      files[std::filesystem::relative(entry.path(), path).string()] = {
          std::istreambuf_iterator<char>(in), {}};
    }
  }
  return files;
}

// Returns the files of the tree `generation` below `root`.
inline std::map<std::string, std::string> GenerationFiles(const std::filesystem::path& root,
                                                          const std::string& generation) {
  return FilesBelow(root / GenerationPath(generation));
}

// Returns the files that a container started now sees in the directory `mount`.
inline std::map<std::string, std::string> MountedFiles(const std::filesystem::path& root,
                                                       const Mount& mount) {
  return FilesBelow(std::filesystem::canonical(root / MountPath(mount)));
}

}  // namespace cachewarm::agent

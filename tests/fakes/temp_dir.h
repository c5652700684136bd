// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "lib/fs/dir.h"

namespace cachewarm {

// A temporary directory for one test; the destructor removes it with its content.
class TempDir {
 public:
  TempDir() {
    std::string pattern = ::testing::TempDir() + "cachewarm-XXXXXX";
    path_ = ::mkdtemp(pattern.data()) == nullptr ? "" : pattern;
    EXPECT_FALSE(path_.empty()) << "cannot make " << pattern;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  void Write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
  }
  fs::Dir Open() const { return *fs::Dir::Open(path_); }

 private:
  std::string path_;
};

}  // namespace cachewarm

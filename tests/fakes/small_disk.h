// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mount.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "lib/fs/tree.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm {

// A tmpfs of `kibibytes`; unmounted by the destructor.
class SmallDisk {
 public:
  explicit SmallDisk(int kibibytes)
      : error_(::mount("cachewarm-test", temp_.path().c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
                       fmt::format("size={}k", kibibytes).c_str()) == 0
                   ? 0
                   : errno) {}
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (error_ == 0) {
      EXPECT_EQ(::umount2(temp_.path().c_str(), MNT_DETACH), 0) << std::strerror(errno);
    }
  }
  int error() const { return error_; }
  std::string operator/(const std::string& name) const { return temp_ / name; }
  int64_t FreeBytes() const { return fs::MeasureSpace(temp_.Open())->free_bytes; }
  // Fills the disk so that `kibibytes` stay free until RemoveFiller().
  void FillUntilFree(int kibibytes) const {
    temp_.Write("filler",
                std::string(static_cast<size_t>(FreeBytes() - (int64_t{kibibytes} << 10)), 'x'));
  }
  void RemoveFiller() const { std::filesystem::remove(temp_ / "filler"); }

 private:
  const TempDir temp_;
  const int error_;
};

}  // namespace cachewarm

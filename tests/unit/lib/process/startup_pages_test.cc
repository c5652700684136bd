// SPDX-License-Identifier: Apache-2.0
#include "lib/process/startup_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "lib/fs/fd.h"

namespace cachewarm::process {
namespace {

using ::testing::TestWithParam;
using Mappings = std::vector<Mapping>;

struct SmapsCase {
  const char* name;
  const char* text;
  Mappings expected;
};

const SmapsCase kCases[] = {
    {"text",
     "1000-3000 r-xp 00002000 08:01 123   /usr/bin/x\nRss: 8 kB\nAnonymous:     0 kB\n",
     {{0x1000, 0x3000}}},
    {"constants_and_a_path_with_a_blank",
     "7f00-8f00 r--p 00000000 08:01 9 /opt/my lib.so\nAnonymous: 0 kB\n",
     {{0x7f00, 0x8f00}}},
    {"two_in_a_row",
     "1000-2000 r--p 0 08:01 9 /a\nAnonymous: 0 kB\n2000-3000 r-xp 0 08:01 9 /a\nAnonymous: 0 kB\n",
     {{0x1000, 0x2000}, {0x2000, 0x3000}}},
    {"relocated", "1000-2000 r--p 0 08:01 9 /a\nAnonymous:   12 kB\n", {}},
    {"writable", "1000-2000 rw-p 0 08:01 9 /a\nAnonymous: 0 kB\n", {}},
    {"shared", "1000-2000 r--s 0 08:01 9 /a\nAnonymous: 0 kB\n", {}},
    {"heap", "1000-2000 r--p 00000000 00:00 0 \nAnonymous: 0 kB\n", {}},
    {"vdso", "1000-2000 r-xp 00000000 00:00 0 [vdso]\nAnonymous: 0 kB\n", {}},
    {"one_that_says_nothing_of_its_pages", "1000-2000 r--p 0 08:01 9 /a\nRss: 4 kB\n", {}},
    {"the_next_says_it",
     "1000-2000 r--p 0 08:01 9 /a\n2000-3000 rw-p 0 08:01 9 /a\nAnonymous: 0 kB\n",
     {}},
    {"backwards", "3000-2000 r--p 0 08:01 9 /a\nAnonymous: 0 kB\n", {}},
    {"no_numbers", "10x0-2000 r--p 0 08:01 9 /a\nAnonymous: 0 kB\n", {}},
    {"cut_off", "1000-2000 r--p 0 08:01 9 /a\nAnonym", {}},
    {"nothing", "", {}},
};

class SmapsText : public TestWithParam<SmapsCase> {};

TEST_P(SmapsText, ListsUnchangedFileMappings) {
  EXPECT_EQ(UnchangedFiles(GetParam().text), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(Cases, SmapsText, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// A file of a few pages, mapped as programs are.
class FileMapping {
 public:
  FileMapping() {
    char path[] = "/tmp/start-pages-XXXXXX";
    file_ = fs::Fd(mkstemp(path));
    unlink(path);
    const std::string bytes(kSize, 'x');
    EXPECT_EQ(write(file_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(kSize));
    at_ = static_cast<char*>(
        mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_.get(), 0));
    EXPECT_NE(at_, MAP_FAILED);
  }
  ~FileMapping() { munmap(at_, kSize); }
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  // Reads every page; returns the sum of their first bytes.
  int Touch() const {
    int sum = 0;
    for (size_t at = 0; at < kSize; at += kPage) {
      sum += static_cast<const volatile char*>(at_)[at];
    }
    return sum;
  }
  void Write(char byte) { at_[0] = byte; }
  void Seal() { ASSERT_EQ(mprotect(at_, kSize, PROT_READ), 0); }
  // Number of its pages in the page tables of this process (bit 63 of each word,
  // proc_pid_pagemap(5)).
  size_t Resident() const {
    const fs::Fd pagemap(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    std::array<uint64_t, kSize / kPage> words{};
    const off_t offset =
        static_cast<off_t>(reinterpret_cast<uintptr_t>(at_) / kPage * sizeof(uint64_t));
    EXPECT_EQ(pread(pagemap.get(), words.data(), sizeof(words), offset),
              static_cast<ssize_t>(sizeof(words)));
    return static_cast<size_t>(
        std::count_if(words.begin(), words.end(), [](uint64_t word) { return (word >> 63) != 0; }));
  }

  static constexpr size_t kPage = 4096;
  static constexpr size_t kSize = 4 * kPage;

 private:
  fs::Fd file_;
  char* at_ = nullptr;
};

TEST(StartupPages, UnchangedPagesReloadWithSameBytes) {
  FileMapping mapping;
  mapping.Seal();
  EXPECT_EQ(mapping.Touch(), 4 * 'x');
  ASSERT_EQ(mapping.Resident(), 4u);
  const auto dropped = DropStartupPages();
  ASSERT_TRUE(dropped.ok()) << dropped.status();
  EXPECT_GE(*dropped, FileMapping::kSize);
  EXPECT_EQ(mapping.Resident(), 0u);
  EXPECT_EQ(mapping.Touch(), 4 * 'x');
}

TEST(StartupPages, ModifiedPagesStay) {
  FileMapping mapping;
  mapping.Write('y');
  mapping.Seal();
  ASSERT_TRUE(DropStartupPages().ok());
  EXPECT_EQ(mapping.Touch(), 'y' + 3 * 'x');
}

}  // namespace
}  // namespace cachewarm::process

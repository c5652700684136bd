// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/whole_file.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/caches/cache_table.h"
#include "lib/fs/dir.h"
#include "tests/fakes/cache_files.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::capture {
namespace {

class WholeFileTest : public ::testing::Test {
 protected:
  fs::Fd Opened(const std::string& bytes) {
    folder_.Write(kObjectFile, bytes);
    return *folder_.Open().OpenFile(kObjectFile);
  }

  absl::Status Check(const std::string& bytes) {
    return CheckWholeFile(Opened(bytes), caches::CacheTable::AllPresets().Classify(kObjectFile),
                          kObjectFile, static_cast<int64_t>(bytes.size()));
  }

  TempDir folder_;
};

TEST_F(WholeFileTest, RangeIsShorterOnlyAtEndOfFile) {
  const fs::Fd file = Opened("0123456789");
  EXPECT_EQ(*ReadRange(file, 0, 4), "0123");
  EXPECT_EQ(*ReadRange(file, 6, 4), "6789");
  EXPECT_EQ(*ReadRange(file, 8, 4), "89");
  EXPECT_EQ(*ReadRange(file, 10, 4), "");
}

TEST_F(WholeFileTest, SharedObjectIsCompleteUpToSectionTable) {
  const std::string whole = SharedObject(std::string(10'000, 'c'));
  EXPECT_TRUE(Check(whole).ok());
  EXPECT_TRUE(absl::IsDataLoss(Check(whole.substr(0, whole.size() - 1))));
  EXPECT_TRUE(absl::IsDataLoss(Check("")));
}

}  // namespace
}  // namespace cachewarm::capture

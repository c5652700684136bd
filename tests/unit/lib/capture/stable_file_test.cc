// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/stable_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "lib/fs/file.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::capture {
namespace {

// A tree with one file and its stat at selection.
class StableFile : public ::testing::Test {
 protected:
  StableFile() {
    scratch_.Write("inductor/f", "0123456789");
    tree_ = *fs::Dir::Open(scratch_.path());
    chosen_ = *tree_->Stat("inductor/f");
  }

  absl::StatusOr<std::unique_ptr<bundle::Source>> Open() {
    return OpenStable({.tree = *tree_,
                       .path = "inductor/f",
                       .expected = chosen_,
                       .on_opening = [this](const std::string& path) { opened_.push_back(path); }});
  }

  static absl::StatusOr<std::string> ReadAll(bundle::Source& source, size_t piece) {
    std::string text;
    std::vector<char> buffer(piece);
    while (true) {
      const absl::StatusOr<size_t> got = source.Read(buffer);
      if (!got.ok()) {
        return got.status();
      }
      if (*got == 0) {
        return text;
      }
      text.append(buffer.data(), *got);
    }
  }

  int OpenForWriting() const {
    return ::open((scratch_ / "inductor/f").c_str(), O_WRONLY | O_NONBLOCK);
  }

  TempDir scratch_;
  std::optional<fs::Dir> tree_;
  fs::FileStat chosen_;
  std::vector<std::string> opened_;
};

TEST_F(StableFile, ReadsUnchangedFile) {
  for (const size_t piece : {1U, 3U, 10U, 4096U}) {
    auto source = Open();
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ(*ReadAll(**source, piece), "0123456789") << piece;
  }
  EXPECT_EQ(opened_.size(), 4U);
}

TEST_F(StableFile, AdmitsWritersAfterwards) {
  ASSERT_TRUE(Open().ok());
  const int writer = OpenForWriting();
  EXPECT_GE(writer, 0) << "the lease was not released";
  ::close(writer);
}

TEST_F(StableFile, RejectsFileOpenForWriting) {
  const int writer = OpenForWriting();
  ASSERT_GE(writer, 0);
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kAborted);
  ::close(writer);
  EXPECT_TRUE(Open().ok());
}

TEST_F(StableFile, DetectsWriterDuringRead) {
  auto source = Open();
  ASSERT_TRUE(source.ok());
  std::array<char, 4> buffer{};
  ASSERT_TRUE((*source)->Read(buffer).ok());
  const int writer = OpenForWriting();
  ASSERT_GE(writer, 0);
  EXPECT_EQ(ReadAll(**source, 100).status().code(), absl::StatusCode::kAborted);
  ::close(writer);
}

TEST_F(StableFile, IgnoresWritersIfConfigured) {
  const int writer = OpenForWriting();
  ASSERT_GE(writer, 0);
  const auto open = [&] {
    return OpenStable(
        {.tree = *tree_, .path = "inductor/f", .expected = chosen_, .detect_writers = false});
  };
  auto source = open();
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(*ReadAll(**source, 3), "0123456789");
  ASSERT_EQ(::write(writer, "x", 1), 1);
  ::close(writer);
  EXPECT_EQ(open().status().code(), absl::StatusCode::kAborted);
}

TEST_F(StableFile, DetectsChangeBeforeOpen) {
  scratch_.Write("inductor/f", "9876543210");
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kAborted);
}

TEST_F(StableFile, DetectsReplacementByEqualFile) {
  scratch_.Write("inductor/other", "0123456789");
  std::filesystem::rename(scratch_ / "inductor/other", scratch_ / "inductor/f");
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kAborted);
}

TEST_F(StableFile, DetectsTruncationDuringRead) {
  auto source = Open();
  ASSERT_TRUE(source.ok());
  std::array<char, 4> buffer{};
  ASSERT_TRUE((*source)->Read(buffer).ok());
  std::filesystem::resize_file(scratch_ / "inductor/f", 6);
  EXPECT_EQ(ReadAll(**source, 100).status().code(), absl::StatusCode::kAborted);
}

TEST_F(StableFile, DetectsGrowthDuringRead) {
  auto source = Open();
  ASSERT_TRUE(source.ok());
  std::filesystem::resize_file(scratch_ / "inductor/f", 20);
  EXPECT_EQ(ReadAll(**source, 100).status().code(), absl::StatusCode::kAborted);
}

TEST_F(StableFile, DetectsRemoval) {
  std::filesystem::remove(scratch_ / "inductor/f");
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kAborted);
}

TEST_F(StableFile, RejectsLinkAtThePath) {
  std::filesystem::remove(scratch_ / "inductor/f");
  std::filesystem::create_symlink("/etc/passwd", scratch_ / "inductor/f");
  EXPECT_FALSE(Open().ok());
}

TEST_F(StableFile, SurvivesConcurrentWriters) {
  std::jthread writer([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      const int file = OpenForWriting();
      if (file >= 0) {
        ::close(file);
      }
    }
  });
  const fs::Fd file = *tree_->OpenFile("inductor/f");
  for (int i = 0; i < 2000; ++i) {
    const absl::Status status = CheckNoWriter(file, "f");
    ASSERT_TRUE(status.ok() || absl::IsAborted(status)) << status;
  }
}

TEST_F(StableFile, ChecksEmptyFile) {
  scratch_.Write("inductor/f", "");
  chosen_ = *tree_->Stat("inductor/f");
  auto source = Open();
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(*ReadAll(**source, 8), "");
}

}  // namespace
}  // namespace cachewarm::capture

// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client/token.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/fakes/fake_clock.h"
#include "tests/fakes/temp_dir.h"

namespace cachewarm::kube {
namespace {

class TokenTest : public testing::Test {
 protected:
  void Rotate(const std::string& token) { std::ofstream(path_) << token; }

  TempDir folder_;
  std::string path_ = folder_ / "token";
  fakes::FakeClock clock_;
};

TEST_F(TokenTest, StaticTokenStays) {
  TokenSource source({.token = "abc"}, clock_);
  clock_.Advance(std::chrono::hours(2));
  EXPECT_EQ(source.Token(), "abc");
  EXPECT_FALSE(source.Reload("abc"));
}

TEST_F(TokenTest, RereadsFileAfterAMinute) {
  Rotate("one\n");
  TokenSource source({.token_file = path_}, clock_);
  Rotate("two\n");
  clock_.Advance(std::chrono::seconds(59));
  EXPECT_EQ(source.Token(), "one");
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(source.Token(), "two");
}

TEST_F(TokenTest, RereadsRejectedTokenAtOnce) {
  Rotate("one");
  TokenSource source({.token_file = path_}, clock_);
  EXPECT_FALSE(source.Reload("one")) << "the file has no new token";
  Rotate("two");
  EXPECT_TRUE(source.Reload("one"));
  EXPECT_EQ(source.Token(), "two");
  EXPECT_TRUE(source.Reload("one")) << "another thread had the old one";
}

TEST_F(TokenTest, UnreadableFileKeepsLastToken) {
  Rotate("one");
  TokenSource source({.token_file = path_}, clock_);
  for (const char* content : {"", "\n"}) {
    Rotate(content);
    clock_.Advance(std::chrono::minutes(2));
    EXPECT_EQ(source.Token(), "one");
  }
  std::filesystem::remove(path_);
  clock_.Advance(std::chrono::minutes(2));
  EXPECT_EQ(source.Token(), "one");
  EXPECT_FALSE(source.Reload("one"));
}

TEST_F(TokenTest, NoSourceGivesNoToken) {
  EXPECT_EQ(TokenSource({}, clock_).Token(), "");
}

}  // namespace
}  // namespace cachewarm::kube

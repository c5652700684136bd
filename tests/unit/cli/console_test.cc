// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cachewarm::cli {
namespace {

TEST(FormatBytes, UsesDecimalUnits) {
  const std::pair<int64_t, std::string> cases[] = {
      {0, "0 B"},          {999, "999 B"},          {1000, "1.0 kB"},
      {12'345, "12.3 kB"}, {194'600'000, "195 MB"}, {1'002'700'000, "1.0 GB"},
      {999'999, "1.0 MB"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(FormatBytes(bytes), text);
  }
}

TEST(ExitCode, DistinguishesDamageAbsenceAndFailure) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("")), 3);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError("")), 130);
}

TEST(Progress, IsPrintedOnlyOnATerminal) {
  for (const bool terminal : {true, false}) {
    for (const bool quiet : {true, false}) {
      std::ostringstream out;
      std::ostringstream err;
      Console console{.out = out, .err = err, .err_is_terminal = terminal, .clock = SystemClock()};
      {
        Progress progress(console, "fetching", quiet);
        progress.Show(50'000'000, 200'000'000);
        progress.Show(50'000'001, 200'000'000);
      }
      EXPECT_EQ(out.str(), "");
      if (terminal && !quiet) {
        EXPECT_THAT(err.str(), ::testing::HasSubstr("fetching 50.0 MB of 200 MB, 25 %"));
        EXPECT_TRUE(err.str().ends_with("\r\033[K"));
      } else {
        EXPECT_EQ(err.str(), "");
      }
    }
  }
}

}  // namespace
}  // namespace cachewarm::cli

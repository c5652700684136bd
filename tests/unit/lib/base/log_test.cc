// SPDX-License-Identifier: Apache-2.0
#include "lib/base/log.h"

#include <gmock/gmock.h>

#include <limits>
#include <thread>
#include <vector>

#include "lib/base/json_log.h"
#include "lib/base/utf8.h"
#include "tests/fakes/fake_clock.h"

namespace cachewarm {
namespace {

using ::testing::HasSubstr;

std::string Line(LogFields fields) {
  return LogLine("T", LogLevel::kInfo, "e", fields);
}

TEST(LogLine, WritesOneObject) {
  EXPECT_EQ(LogLine("2026-01-01T00:00:00.000000Z", LogLevel::kWarning, "bundle published",
                    {{"bytes", 12}, {"ok", true}, {"name", "x"}, {"durationSeconds", 1.5}}),
            R"({"ts":"2026-01-01T00:00:00.000000Z","level":"warning","msg":"bundle published",)"
            R"("bytes":12,"ok":true,"name":"x","durationSeconds":1.5})");
}

TEST(LogLine, KeepsTypesOfNumbers) {
  EXPECT_THAT(Line({{"note", int64_t{-9'000'000'000}}}), HasSubstr("\"note\":-9000000000"));
  EXPECT_THAT(Line({{"note", uint64_t{9'000'000'000}}}), HasSubstr("\"note\":9000000000"));
  EXPECT_THAT(Line({{"note", std::string("s")}}), HasSubstr("\"note\":\"s\""));
  EXPECT_THAT(Line({{"note", std::string_view("sv")}}), HasSubstr("\"note\":\"sv\""));
  EXPECT_THAT(Line({{"note", false}}), HasSubstr("\"note\":false"));
}

TEST(LogLine, NonFiniteNumbersAreNull) {
  EXPECT_THAT(Line({{"note", std::numeric_limits<double>::infinity()}}),
              HasSubstr("\"note\":null"));
  EXPECT_THAT(Line({{"note", std::numeric_limits<double>::quiet_NaN()}}),
              HasSubstr("\"note\":null"));
}

TEST(LogLine, EscapesControlCharactersAndQuotes) {
  EXPECT_THAT(Line({{"note", "a\"b\\c\nd\te\r\x01\x1f\x7f"}}),
              HasSubstr("\"note\":\"a\\\"b\\\\c\\nd\\u0009e\\u000d\\u0001\\u001f\x7f\""));
  EXPECT_EQ(Line({{"note", std::string("a\0b", 3)}}).find('\0'), std::string::npos);
}

TEST(LogLine, ReplacesInvalidUtf8) {
  for (const char* bad : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82",
                          "\x80", "\xf8\x88\x80\x80\x80"}) {
    const std::string line = Line({{"note", bad}});
    EXPECT_TRUE(IsUtf8(line)) << line;
    EXPECT_THAT(line, HasSubstr("\\ufffd"));
  }
  EXPECT_THAT(Line({{"note", "größe 核 😀"}}), HasSubstr("größe 核 😀"));
}

TEST(ParseLogLevel, ParsesFourLevels) {
  EXPECT_EQ(ParseLogLevel("debug").value(), LogLevel::kDebug);
  EXPECT_EQ(ParseLogLevel("info").value(), LogLevel::kInfo);
  EXPECT_EQ(ParseLogLevel("warning").value(), LogLevel::kWarning);
  EXPECT_EQ(ParseLogLevel("error").value(), LogLevel::kError);
  for (const char* bad : {"", "Info", "warn", "trace"}) {
    EXPECT_THAT(std::string(ParseLogLevel(bad).status().message()),
                HasSubstr("is none of debug, info, warning, error"));
  }
}

TEST(JsonLog, WritesLinesOfItsLevelToStandardError) {
  fakes::FakeClock clock;
  ::testing::internal::CaptureStderr();
  {
    const std::unique_ptr<Log> log = MakeJsonLog(LogLevel::kInfo, clock);
    log->Debug("not seen");
    log->Info("seen", {{"files", 1}});
    log->Error("{} %v is no format");
  }
  const std::string out = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(out,
            R"({"ts":"2026-01-01T00:00:00.000000Z","level":"info","msg":"seen","files":1})"
            "\n"
            R"({"ts":"2026-01-01T00:00:00.000000Z","level":"error","msg":"{} %v is no format"})"
            "\n");
}

TEST(JsonLog, LinesOfSeveralThreadsDoNotMix) {
  fakes::FakeClock clock;
  ::testing::internal::CaptureStderr();
  {
    const std::unique_ptr<Log> log = MakeJsonLog(LogLevel::kInfo, clock);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&log] {
        for (int i = 0; i < 100; ++i) {
          log->Info("e", {{"note", std::string(200, 'x')}});
        }
      });
    }
  }
  const std::string out = ::testing::internal::GetCapturedStderr();
  const std::string line = out.substr(0, out.find('\n') + 1);
  ASSERT_EQ(out.size(), line.size() * 400);
  for (size_t at = 0; at < out.size(); at += line.size()) {
    ASSERT_EQ(out.compare(at, line.size(), line), 0);
  }
}

}  // namespace
}  // namespace cachewarm

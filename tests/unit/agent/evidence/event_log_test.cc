// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/event_log.h"

#include <gmock/gmock.h>

#include "fmt/format.h"

namespace cachewarm::agent {
namespace {

constexpr WallTime kNow{Duration(1'700'000'000'000)};

FileEvent At(int seconds, const std::string& path, FileEventType type = FileEventType::kRead) {
  return {.type = type, .time = kNow + std::chrono::seconds(seconds), .path = path};
}

EventRecord ReadAll(const EventLog& log, int begin, int end) {
  EventRecord record;
  log.Read(kNow + std::chrono::seconds(begin), kNow + std::chrono::seconds(end), record);
  return record;
}

TEST(EventLog, ReturnsEventsOfWindow) {
  EventLog log({}, kNow);
  for (int i = 0; i < 10; ++i) {
    log.Add(At(i * 2, fmt::format("f{}", i)));
  }
  const EventRecord record = ReadAll(log, 4, 8);
  ASSERT_EQ(record.events.size(), 3U);
  EXPECT_EQ(record.events.front(), At(4, "f2"));
  EXPECT_EQ(record.events.back(), At(8, "f4"));
  EXPECT_TRUE(record.complete);
}

TEST(EventLog, WindowBeforeItsStartIsIncomplete) {
  EventLog log({}, kNow);
  EXPECT_FALSE(ReadAll(log, -1, 5).complete);
  EXPECT_TRUE(ReadAll(log, 0, 5).complete);
}

TEST(EventLog, LossMakesEarlierWindowsIncomplete) {
  EventLog log({}, kNow);
  log.Lose(kNow + std::chrono::seconds(10));
  EXPECT_FALSE(ReadAll(log, 9, 20).complete);
  EXPECT_TRUE(ReadAll(log, 10, 20).complete);
  log.Lose(kNow);
  EXPECT_FALSE(ReadAll(log, 9, 20).complete) << "an earlier loss has no effect";
}

TEST(EventLog, IncompleteRecordStaysIncomplete) {
  EventLog log({}, kNow);
  EventRecord record{.complete = false};
  log.Read(kNow, kNow, record);
  EXPECT_FALSE(record.complete);
}

TEST(EventLog, EventsOfPathsBeyondTheByteLimitAreLost) {
  EventLog log({.path_bytes_max = 10}, kNow);
  log.Add(At(1, "12345"));
  log.Add(At(2, "67890"));
  log.Add(At(3, "12345", FileEventType::kWritten));
  EXPECT_TRUE(ReadAll(log, 0, 3).complete);
  log.Add(At(4, "x"));
  EXPECT_EQ(log.size(), 3U);
  EXPECT_FALSE(ReadAll(log, 0, 4).complete);
}

TEST(EventLog, OldEventsAndTheirPathsAreDropped) {
  EventLog log({.path_bytes_max = 10, .keep = std::chrono::seconds(10)}, kNow);
  log.Add(At(1, "1234567890"));
  log.DropOld(kNow + std::chrono::seconds(11));
  EXPECT_EQ(log.size(), 1U);
  log.DropOld(kNow + std::chrono::seconds(12));
  EXPECT_EQ(log.size(), 0U);
  log.Add(At(13, "0987654321"));
  EXPECT_EQ(log.size(), 1U) << "the bytes of the dropped path are free again";
}

TEST(EventLog, FirstReadSinceAChangeOfTheFileIsReturned) {
  EventLog log({}, kNow);
  for (const int second : {1, 2, 3}) {
    log.Add(At(second, "f", FileEventType::kOpened));
    log.Add(At(second, "f"));
    log.Add(At(second, "other"));
  }
  log.Add(At(4, "f", FileEventType::kMovedTo));
  log.Add(At(5, "f"));
  log.Add(At(6, "f"));
  EXPECT_THAT(ReadAll(log, 0, 9).events,
              testing::ElementsAre(At(1, "f", FileEventType::kOpened), At(1, "f"), At(1, "other"),
                                   At(4, "f", FileEventType::kMovedTo), At(5, "f")));
  EXPECT_THAT(ReadAll(log, 2, 3).events,
              testing::ElementsAre(At(2, "f", FileEventType::kOpened), At(2, "f"), At(2, "other")))
      << "the first of the window, also if there are earlier ones";
}

TEST(EventLog, ImmediateRepeatIsOneEvent) {
  EventLog log({}, kNow);
  for (int i = 0; i < 1000; ++i) {
    log.Add(At(0, "hot"));
  }
  EXPECT_EQ(log.size(), 1U);
  log.Add(At(0, "hot", FileEventType::kOpened));
  log.Add(At(1, "hot"));
  EXPECT_EQ(log.size(), 3U);
}

TEST(EventLog, AddIfKnownAddsOnlyEventsOfKnownPaths) {
  EventLog log({.keep = std::chrono::seconds(10)}, kNow);
  EXPECT_FALSE(log.AddIfKnown(At(1, "f")));
  EXPECT_EQ(log.size(), 0U);
  log.Add(At(2, "f"));
  EXPECT_TRUE(log.AddIfKnown(At(3, "f")));
  EXPECT_FALSE(log.AddIfKnown(At(3, "g")));
  EXPECT_THAT(ReadAll(log, 0, 9).events, testing::ElementsAre(At(2, "f")))
      << "the second read is a repeat";
  EXPECT_EQ(log.size(), 2U);
  log.DropOld(kNow + std::chrono::seconds(20));
  EXPECT_FALSE(log.AddIfKnown(At(21, "f"))) << "its events were dropped";
}

TEST(EventLog, AddIfKnownKeepsTheLimitOfEvents) {
  EventLog log({.events_max = 4}, kNow);
  for (int second = 1; second <= 9; ++second) {
    if (!log.AddIfKnown(At(second, "f"))) {
      log.Add(At(second, "f"));
    }
    EXPECT_LE(log.size(), 4U);
  }
  EXPECT_FALSE(ReadAll(log, 1, 9).complete);
}

TEST(EventLog, RepeatsAreCountedPerFileAndType) {
  EventLog log({}, kNow);
  for (const FileEventType type :
       {FileEventType::kOpened, FileEventType::kRead, FileEventType::kCreated,
        FileEventType::kMovedTo, FileEventType::kDirectoryIn}) {
    for (const char* path : {"f", "g", "f", "g"}) {
      log.Add(At(1, path, type));
    }
  }
  EXPECT_EQ(log.size(), 10U);
}

TEST(EventLog, KeepsEveryWrite) {
  EventLog log({}, kNow);
  FileEvent write = At(0, "f", FileEventType::kWritten);
  log.Add(write);
  write.mtime = kNow;
  log.Add(write);
  EXPECT_EQ(log.size(), 2U);
}

TEST(EventLog, ClockMayBeSetBack) {
  EventLog log({}, kNow);
  log.Add(At(100, "f"));
  log.Add(At(5, "f"));
  EXPECT_EQ(ReadAll(log, 0, 10).events.size(), 1U);
}

TEST(EventLog, DropsOldestHalfAtLimit) {
  EventLog log({.events_max = 100, .paths_max = 1000}, kNow);
  for (int i = 0; i < 101; ++i) {
    log.Add(At(i, fmt::format("f{}", i)));
  }
  EXPECT_EQ(log.size(), 51U);
  EXPECT_FALSE(ReadAll(log, 49, 200).complete);
  const EventRecord record = ReadAll(log, 50, 200);
  EXPECT_TRUE(record.complete);
  ASSERT_EQ(record.events.size(), 51U);
  EXPECT_EQ(record.events.front().path, "f50");
  EXPECT_EQ(record.events.back().path, "f100");
}

TEST(EventLog, DropsOldEventsFirst) {
  EventLog log({.events_max = 10, .paths_max = 1000, .keep = std::chrono::seconds(5)}, kNow);
  for (int i = 0; i < 11; ++i) {
    log.Add(At(i, fmt::format("f{}", i)));
  }
  EXPECT_EQ(log.size(), 6U);
  EXPECT_TRUE(ReadAll(log, 5, 10).complete);
  EXPECT_FALSE(ReadAll(log, 4, 10).complete);
}

TEST(EventLog, TooManyNamesMakeItIncomplete) {
  EventLog log({.events_max = 1000, .paths_max = 3, .keep = std::chrono::seconds(5)}, kNow);
  for (int i = 0; i < 4; ++i) {
    log.Add(At(0, fmt::format("f{}", i)));
  }
  EXPECT_EQ(log.size(), 3U);
  EXPECT_FALSE(ReadAll(log, 0, 1).complete);
  EXPECT_TRUE(ReadAll(log, 1, 2).complete);
  log.Add(At(10, "new"));
  const EventRecord record = ReadAll(log, 5, 20);
  ASSERT_EQ(record.events.size(), 1U);
  EXPECT_EQ(record.events[0].path, "new");
}

}  // namespace
}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
// Properties of any sequence of events, because pods can raise any event at any time.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "agent/evidence/classify.h"
#include "agent/evidence/event_log.h"
#include "fmt/format.h"

namespace cachewarm::agent {
namespace {

using api::StartResult;

constexpr WallTime kStart{Duration(1'700'000'000'000)};

class Events {
 public:
  explicit Events(uint32_t seed) : random_(seed) {}

  FileEvent Next() {
    static const char* const kPaths[] = {"inductor/fxgraph/a/f1/1",
                                         "inductor/fxgraph/a/f2/1",
                                         "inductor/aotautograd/a1/1",
                                         "inductor/ab/cab.main.so",
                                         "inductor/ab/cab.main.cpp",
                                         "inductor/cd/ccd.so",
                                         "inductor/cd/ccd.so.load_ok",
                                         "inductor/locks/x.lock",
                                         "jax/f-cache",
                                         "triton/A/__grp__k.json",
                                         "deepgemm/cache/k/kernel.cubin",
                                         "other/x",
                                         "../x"};
    time_ += Duration(random_() % 2000);
    return {.type = static_cast<FileEventType>(random_() % 6),
            .time = time_,
            .mtime = random_() % 2 == 0 ? time_ : WallTime{},
            .path = kPaths[random_() % std::size(kPaths)]};
  }

  uint32_t Random(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

 private:
  std::mt19937 random_;
  WallTime time_ = kStart;
};

Observation Classify(const EventRecord& record) {
  return ClassifyStart(record, {.started_time = kStart, .ready_time = kStart},
                       caches::CacheTable::AllPresets());
}

TEST(ClassifyProperties, ResultFollowsFromCounts) {
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    Events events(seed);
    EventRecord record;
    const uint32_t count = events.Random(25);
    for (uint32_t i = 0; i < count; ++i) {
      record.events.push_back(events.Next());
    }
    record.complete = events.Random(10) != 0;
    const Observation seen = Classify(record);
    SCOPED_TRACE(seed);
    ASSERT_GE(seen.compile_span, Duration(0));
    ASSERT_EQ(seen.result == StartResult::kUnknown, !record.complete);
    if (!record.complete) {
      continue;
    }
    const bool opened = seen.entries_opened > 0;
    const bool written = seen.entries_written > 0;
    const bool native = seen.native_built > 0;
    ASSERT_EQ(seen.result == StartResult::kHit, opened && !written && !native);
    ASSERT_EQ(seen.result == StartResult::kHollow, opened && !written && native);
    ASSERT_EQ(seen.result == StartResult::kPartial, opened && written);
    ASSERT_EQ(seen.result == StartResult::kMiss, !opened && (written || native));
    ASSERT_EQ(seen.result == StartResult::kInert, !opened && !written && !native);
    ASSERT_TRUE(written || seen.compile_span == Duration(0));
  }
}

TEST(ClassifyProperties, MoreEventsNeverRemoveACompile) {
  for (uint32_t seed = 0; seed < 80; ++seed) {
    Events events(seed);
    EventRecord record;
    Observation before = Classify(record);
    for (int i = 0; i < 15; ++i) {
      record.events.push_back(events.Next());
      const Observation now = Classify(record);
      ASSERT_GE(now.entries_written, before.entries_written) << seed;
      ASSERT_GE(now.compile_span, before.compile_span) << seed;
      ASSERT_GE(now.compiled_after, before.compiled_after) << seed;
      before = now;
    }
  }
}

TEST(ClassifyProperties, UsedFilesMayTravel) {
  Events events(7);
  EventRecord record;
  for (int i = 0; i < 500; ++i) {
    record.events.push_back(events.Next());
  }
  for (const std::string& path : UsedIn(record, caches::CacheTable::AllPresets()).paths) {
    EXPECT_TRUE(caches::CacheTable::AllPresets().Classify(path).carried()) << path;
  }
}

TEST(EventLogProperties, MatchesFullList) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    Events events(seed);
    EventLog log({.events_max = 50, .paths_max = 8, .keep = std::chrono::seconds(40)}, kStart);
    std::vector<FileEvent> all;
    for (int i = 0; i < 400; ++i) {
      all.push_back(events.Next());
      log.Add(all.back());
      ASSERT_LE(log.size(), 50U);
      if (i % 10 != 0) {
        continue;
      }
      const WallTime end = all.back().time;
      const WallTime begin = end - Duration(events.Random(60'000));
      EventRecord record;
      log.Read(begin, end, record);
      for (const FileEvent& event : record.events) {
        ASSERT_GE(event.time, begin);
        ASSERT_LE(event.time, end);
        FileEvent kept = event;
        ASSERT_TRUE(std::any_of(all.begin(), all.end(),
                                [&kept](const FileEvent& one) { return one == kept; }));
      }
      if (!record.complete) {
        continue;
      }
      // A complete record contains every file and type of the window, except for repeats.
      for (const FileEvent& event : all) {
        if (event.time < begin) {
          continue;
        }
        ASSERT_TRUE(std::any_of(record.events.begin(), record.events.end(),
                                [&event](const FileEvent& one) {
                                  return one.path == event.path && one.type == event.type;
                                }) ||
                    std::any_of(all.begin(), all.end(),
                                [&](const FileEvent& one) {
                                  return one.path == event.path && one.type == event.type &&
                                         one.time < begin && event.time - one.time < Duration(100);
                                }))
            << seed << " " << event.path;
      }
    }
  }
}

}  // namespace
}  // namespace cachewarm::agent

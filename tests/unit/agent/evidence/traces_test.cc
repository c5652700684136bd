// SPDX-License-Identifier: Apache-2.0
// Real starts, recorded by the watcher: traces/<name>.txt begins with the result that the engine
// logged for its start, followed by one event per line: "<ms> <type> <recently written> <path>".
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "agent/evidence/classify.h"
#include "lib/api/condition.h"
#include "tests/fakes/source_dir.h"

namespace cachewarm::agent {
namespace {

constexpr WallTime kStart{Duration(1'700'000'000'000)};

struct Trace {
  std::string result;
  int opened = -1;
  int written = -1;
  int native = -1;
  EventRecord record;
};

FileEventType TypeOf(const std::string& word) {
  static const std::map<std::string, FileEventType> types = {
      {"opened", FileEventType::kOpened},   {"read", FileEventType::kRead},
      {"created", FileEventType::kCreated}, {"written", FileEventType::kWritten},
      {"moved", FileEventType::kMovedTo},   {"directory", FileEventType::kDirectoryIn}};
  return types.at(word);
}

Trace Load(const std::filesystem::path& path) {
  Trace trace;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    if (line.starts_with("#")) {
      std::string mark;
      std::string key;
      words >> mark >> key;
      if (key == "expect") {
        words >> trace.result >> trace.opened >> trace.written >> trace.native;
      }
      continue;
    }
    int64_t ms = 0;
    int is_recent = 0;
    std::string type;
    FileEvent event;
    words >> ms >> type >> is_recent >> event.path;
    event.time = kStart + Duration(ms);
    event.mtime = is_recent == 1 ? event.time : WallTime{};
    event.type = TypeOf(type);
    trace.record.events.push_back(event);
  }
  return trace;
}

TEST(Traces, MatchTheResultsOfTheirEngines) {
  const std::filesystem::path folder =
      std::filesystem::path(fakes::SourceDir()) / "tests/unit/agent/evidence/traces";
  int traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().filename().string());
    const Trace trace = Load(entry.path());
    ASSERT_FALSE(trace.record.events.empty());
    const Observation seen =
        ClassifyStart(trace.record, {.started_time = kStart, .ready_time = kStart},
                      caches::CacheTable::AllPresets());
    EXPECT_EQ(api::Name(seen.result), trace.result);
    EXPECT_EQ(seen.entries_opened, trace.opened);
    EXPECT_EQ(seen.entries_written, trace.written);
    EXPECT_EQ(seen.native_built, trace.native);
    EXPECT_EQ(seen.compile_span > Duration(0), trace.written > 0 && trace.native > 0);
    ++traces;
  }
  EXPECT_GE(traces, 4);
}

TEST(Traces, WithoutIndexEntryAreAMiss) {
  const std::filesystem::path path =
      std::filesystem::path(fakes::SourceDir()) / "tests/unit/agent/evidence/traces/miss.txt";
  Trace trace = Load(path);
  // A pod that was killed before its first graph was finished.
  std::erase_if(trace.record.events, [](const FileEvent& event) {
    return event.path.find("graph") != std::string::npos ||
           event.path.find("aotautograd") != std::string::npos;
  });
  const Observation seen =
      ClassifyStart(trace.record, {.started_time = kStart, .ready_time = kStart},
                    caches::CacheTable::AllPresets());
  EXPECT_EQ(seen.result, api::StartResult::kMiss);
  EXPECT_EQ(seen.compile_span, Duration(0));
}

}  // namespace
}  // namespace cachewarm::agent

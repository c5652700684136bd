// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "agent/evidence/events.h"
#include "lib/caches/cache_table.h"

namespace cachewarm::agent {

// What the engine of one starting pod did with its tree. Which events mean what is measured in
// docs/design/0003-file-events.md.
enum class StartResult {
  kUnknown,  // the record is incomplete
  kHit,      // entries read, none compiled
  kPartial,  // some read, some compiled
  kMiss,     // compiled, none read
  kInert,    // no entry read, nothing compiled
  kHollow,   // entries read, none compiled, yet native code was rebuilt
};

// "Unknown", "Hit", ...: as NodeCache.status.starts writes it.
std::string_view ResultName(StartResult result);

struct Observation {
  StartResult result = StartResult::kUnknown;
  int entries_opened = 0;   // distinct index entries that were there before and were read
  int entries_written = 0;  // distinct index entries that were compiled
  int native_built = 0;     // distinct native objects built, compiler probes left out
  // From the first product of a compile to the last index entry; zero when nothing was compiled.
  Duration compile_span{0};
};

// Pure. `record` holds the events of `window` (see StartWindow::begin and end).
Observation ClassifyStart(const EventRecord& record, const StartWindow& window,
                          const caches::CacheTable& table);

// Pure. Paths of the record that were opened, read or written and that may travel.
UsedFiles UsedIn(const EventRecord& record, const caches::CacheTable& table);

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/evidence/events.h"
#include "lib/caches/cache_table.h"

namespace cachewarm::agent {

// What the engine of one starting pod did with its tree. Which file events mean what is measured in
// docs/design/0003-file-events.md:
//   unknown   the record is incomplete
//   hit       entries read, none compiled         partial   some read, some compiled
//   miss      compiled, none read                 inert     no entry read, nothing compiled
//   hollow    entries read, none compiled, yet native code was rebuilt
// Whether a miss was a cold start or a builder's is the caller's to know.
struct Observation {
  api::StartResult result = api::StartResult::kUnknown;
  int entries_opened = 0;   // distinct index entries that were there before and were read
  int entries_written = 0;  // distinct index entries that were compiled
  int native_built = 0;     // distinct native objects built, compiler probes left out
  // From the first product of a compile to the last index entry; zero when nothing was compiled.
  Duration compile_span{0};
};

// Pure. `record` holds the events from WindowBegin to WindowEnd of `start`.
Observation ClassifyStart(const EventRecord& record, const api::StartWindow& start,
                          const caches::CacheTable& table);

// Pure. Paths of the record that were opened, read or written and that may travel.
UsedFiles UsedIn(const EventRecord& record, const caches::CacheTable& table);

}  // namespace cachewarm::agent

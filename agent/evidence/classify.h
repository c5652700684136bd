// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "agent/evidence/events.h"
#include "lib/caches/cache_table.h"

namespace cachewarm::agent {

// Result of one pod start, derived from the file events in its tree
// (docs/design/0003-file-events.md has the measurements):
//   unknown   the record is incomplete
//   hit       entries read, none compiled         partial   some read, some compiled
//   miss      compiled, none read                 inert     no entry read, nothing compiled
//   hollow    entries read, none compiled, but native code was rebuilt
// An entry is an index entry (caches::Role::kIndex). The caller decides whether a miss was a cold
// start or the start of a builder.
struct Observation {
  api::StartResult result = api::StartResult::kUnknown;
  int entries_opened = 0;   // distinct existing index entries that were read
  int entries_written = 0;  // distinct index entries that were compiled
  // distinct files of host code that were built, not counting those that only try the compiler out
  int native_built = 0;
  // Time from the first compiled file to the last index entry; zero if no index entry was compiled.
  Duration compile_span{0};
  // Time from the start of the container to the last compiled file, as far as the record has it;
  // zero if none was compiled.
  Duration compiled_after{0};
};

// Classifies one start. `record` holds the events from WindowBegin to WindowEnd of `start`. Pure.
Observation ClassifyStart(const EventRecord& record, const api::StartWindow& start,
                          const caches::CacheTable& table);

// Returns the files that were opened, read or written according to `record`, limited to those that
// `table` allows in a bundle. Pure.
UsedFiles UsedIn(const EventRecord& record, const caches::CacheTable& table);

// Returns the index entries that were compiled according to `record`, which has no event before
// `begin`, and when each was first compiled. Pure.
std::map<std::string, WallTime> CompiledIn(const EventRecord& record, WallTime begin,
                                           const caches::CacheTable& table);

}  // namespace cachewarm::agent

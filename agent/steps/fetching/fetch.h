// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/steps/fetching/reuse.h"
#include "agent/sync/plan.h"
#include "lib/bundle/transfer.h"
#include "lib/caches/cache_table.h"

namespace cachewarm::agent {

// One generation on its way to the disk. What it refers to must outlive the call.
struct FetchJob {
  bundle::Store& store;
  const fs::Dir& root;
  const caches::CacheTable& table;
  const Clock& clock;
  Fetch step;
  std::string gpu_type;   // of this node: a bundle for another one is refused
  std::string cpu_class;  // likewise, when it holds native host code
  DiskLimits disk;
  int threads = bundle::DefaultThreads();  // that verify, decompress and write
  std::string public_key_file;  // whose keys must have signed every bundle; empty: none need to
  bundle::Limits limits;
  OnOpeningSource on_opening_source;
  // Of one bundle; on the calling thread, often.
  std::function<void(const Digest& digest, int64_t done_bytes)> on_progress;
};

struct Fetched {
  int64_t packed_bytes = 0;  // moved over the network
  int64_t reused_bytes = 0;  // of files that another tree of this node had already
  int64_t files = 0;
  int64_t bytes = 0;  // of the files
  double seconds = 0;
};

struct FetchFault {
  absl::Status status;
  Digest digest;  // of the bundle that was worked at; empty when it was none
  FaultSource source = FaultSource::kDisk;
};

// Checks signatures, reads the manifests, checks fit and room, gives one new tree what others of
// this node have, extracts the rest of all bundles into that staging tree, sets owner and modes,
// writes the journal and gives the tree its name. Afterwards it is complete and on the disk, but no
// link leads to it. On a fault the staging tree is gone again. Sources and codes as KindOfFault()
// tells them apart; OUT_OF_RANGE: over byteLimit.
std::variant<Fetched, FetchFault> FetchGeneration(const FetchJob& job, std::stop_token stop);

}  // namespace cachewarm::agent

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

// Input of FetchGeneration(). All references must outlive the call.
struct FetchJob {
  bundle::Store& store;
  const fs::Dir& root;
  const caches::CacheTable& table;
  const Clock& clock;
  Fetch step;
  std::string gpu_type;  // GPU type of this node; bundles for another GPU type are rejected
  // CPU class of this node; bundles with native host code for another CPU class are rejected.
  std::string cpu_class;
  DiskLimits disk;  // free space is measured again
  // Reserves `need` for this fetch if `check` accepts it: calls `check` with the sum of what the
  // other running fetches have reserved. Empty: no other fetch runs.
  std::function<absl::Status(const DiskAmount& need,
                             const std::function<absl::Status(const DiskAmount& others)>& check)>
      reserve;
  int threads = bundle::DefaultThreads();  // for verifying, decompressing and writing
  // File of public keys; each bundle must be signed by one of them. Empty: no signature is checked.
  std::string public_key_file;
  bundle::Limits limits;
  OnOpeningSource on_opening_source;
  // Called often, on the calling thread, with the layer bytes of one bundle that were read so far.
  std::function<void(const Digest& digest, int64_t done_bytes)> on_progress;
};

struct Fetched {
  int64_t packed_bytes = 0;  // compressed bytes that were downloaded
  int64_t reused_bytes = 0;  // bytes of files that another tree of this node already had
  int64_t files = 0;
  int64_t bytes = 0;  // size of the tree's files
  double seconds = 0;
};

struct FetchFault {
  absl::Status status;
  Digest digest;  // bundle in progress when the fetch failed; empty: none
  FaultSource source = FaultSource::kDisk;
  DiskAmount lacking;  // if the disk has too little space: what must be removed
};

// Checks signatures, reads the manifests, and checks fit and free space. Then reuses files of other
// trees on this node, extracts the remaining files into a staging tree, sets owner and modes,
// writes the journal and gives the tree its final name. Afterwards the tree is complete, but not on
// the disk yet (tree/durable.h), and no link leads to it. After a failure the staging tree is
// removed. KindOfFault() classifies the returned source and status; the code OUT_OF_RANGE means
// that the tree would exceed byteLimit.
std::variant<Fetched, FetchFault> FetchGeneration(const FetchJob& job, std::stop_token stop);

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"
#include "lib/bundle/policy.h"
#include "lib/bundle/stream.h"
#include "lib/bundle/worker_pool.h"

namespace cachewarm::bundle {

// One file to pack. What `open` gives must be exactly `bytes` long and must not change while it is
// read: the caller has made sure that nobody writes it. `open` is called by threads of the packer,
// for several files at the same time; once more for one that may be in the base already, and for
// one that may have the same content as another.
struct PackFile {
  std::string path;
  std::string kind;
  int64_t bytes = 0;
  int64_t mtime_ns = 0;  // 0 unless the kind compares it
  std::function<absl::StatusOr<std::unique_ptr<Source>>()> open;
};

struct PackOptions {
  int level = 2;                    // zstd: docs/design/0006
  int64_t frame_bytes = 4LL << 20;  // raw; a frame is cut there. Multiple of 512, at least 4096
  int threads = DefaultThreads();   // that read, hash and compress; beside the calling one
  Limits limits;
  // An older bundle of such files, or null. What of it is still the same is not packed again: the
  // new bundle has its layers and one of what is new, and says what of the old ones is gone. Unless
  // more than half of the bytes would be new, or more than half of the old ones gone.
  const Bundle* base = nullptr;
  // The new bundle is the union with `base`, which is then required: its files that are not among
  // the new ones stay. Of a path in both the new file counts, and it takes away what of the base
  // cannot lie beside it (a file where it needs a directory, or the other way round). Always the
  // layers of the base and, unless nothing is new, one more.
  bool keep_base = false;
};

struct Packed {
  Config config;
  std::string config_text;
  std::string manifest_text;
  Manifest manifest;
  Digest digest;  // of the manifest: the name of the bundle
};

// Writes the newest layer to `layer`, nothing when the base has all of it, and returns what belongs
// beside it. The same paths, kinds, contents, mtimes, facts and base give the same bytes, whatever
// the order of `files` and the number of threads.
// `layer` is written by the calling thread; when the call returns, all others have ended. Memory:
// raw and packed bytes of threads + 1 frames, and what the entry list takes. INVALID_ARGUMENT for
// what policy.h refuses (of a union, as a whole), duplicates, no file at all, or a layer too many;
// ABORTED when a file is not as long as was said; else the error of `open`, of a Source or of the
// sink. CANCELLED soon after `stop`.
absl::StatusOr<Packed> Pack(std::vector<PackFile> files, const Facts& facts,
                            const PackOptions& options, Sink& layer, std::stop_token stop);

}  // namespace cachewarm::bundle

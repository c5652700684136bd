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

// One file to pack. The source that `open` returns must be exactly `bytes` long and must not change
// while it is read: the caller ensures that nothing writes to the file. `open` is called on threads
// of the packer, concurrently, and twice for files that may equal a file of the base or another
// file.
struct PackFile {
  std::string path;
  std::string kind;
  int64_t bytes = 0;
  int64_t mtime_ns = 0;  // 0 unless engines compare the mtimes of this kind
  std::function<absl::StatusOr<std::unique_ptr<Source>>()> open;
};

struct PackOptions {
  int level = 2;                    // zstd compression level: docs/design/0006
  int64_t frame_bytes = 4LL << 20;  // raw size of a full frame: multiple of 512, at least 4096
  int threads = DefaultThreads();   // to read, hash and compress, besides the calling thread
  Limits limits;
  // An older bundle of the same tree, or null. Unchanged files are not packed again: the new bundle
  // consists of the layers of the base and one layer with the new files and with whiteouts for the
  // removed ones. Exception: the bundle is packed whole if more than half of its bytes would be
  // new, if more than half of the base's bytes are obsolete, or if the base has many layers.
  const Bundle* base = nullptr;
  // Makes the new bundle the union with `base`, which must be set then: files that only the base
  // has are kept. Where both have a path, the new file is used; a file of the base that cannot
  // exist beside the new ones (a file where a new path needs a directory, or vice versa) is
  // dropped. The result always has the layers of the base and, unless nothing is new, one more.
  bool keep_base = false;
};

struct Packed {
  Config config;
  std::string config_text;
  std::string manifest_text;
  Manifest manifest;
  Digest digest;  // of the manifest: identifies the bundle
};

// Packs `files`: writes the new layer to `layer` (no byte if the base has all files) and returns
// manifest and config. Deterministic: the bytes depend on the paths, kinds, contents, mtimes, facts
// and base, not on the order of `files` or the number of threads.
//
// Blocks; writes `layer` on the calling thread. All threads have ended when it returns. Memory: raw
// and packed bytes of threads + 1 frames, and the entry list.
//
// Errors: INVALID_ARGUMENT for files, or a union with the base, that policy.h rejects, for
// duplicate paths, for an empty list of files and for too many layers. ABORTED if the size of a
// file differs from `bytes`. CANCELLED soon after `stop`. Otherwise the error of `open`, of a
// source or of the sink.
absl::StatusOr<Packed> Pack(std::vector<PackFile> files, const Facts& facts,
                            const PackOptions& options, Sink& layer, std::stop_token stop);

}  // namespace cachewarm::bundle

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
// while it is read: the caller ensures that nothing writes to the file. `open` is called
// concurrently, on the packer's threads. For one file it may be called several times: to compare
// the file with the base, to compare it with other files, and to pack it.
struct PackFile {
  std::string path;
  std::string kind;
  int64_t bytes = 0;
  int64_t mtime_ns = 0;  // 0 if the programs that read this kind ignore mtimes
  std::function<absl::StatusOr<std::unique_ptr<Source>>()> open;
};

struct PackOptions {
  int level = 2;                    // zstd compression level; why 2: docs/design/0006
  int64_t frame_bytes = 4LL << 20;  // raw size of a full frame: multiple of 512, at least 4096
  // Number of threads that read, hash and compress, in addition to the calling thread.
  int threads = DefaultThreads();
  Limits limits;
  // An older bundle of the same tree, or null. Unchanged files are not packed again: the new bundle
  // consists of the layers of the base and one layer with the new files and with whiteouts for the
  // removed ones. Unless `keep_base`, all files are packed again, without the base, if
  //   - at least half of their bytes are new,
  //   - at least half of the base's bytes belong to files that were changed or removed, or
  //   - the base has 8 layers or more.
  const Bundle* base = nullptr;
  // Makes the new bundle the union of the files and `base`, which must then be set: files that
  // exist only in the base are kept. If a path is in both, the new file replaces the old one. A
  // file of the base is also dropped if it cannot exist beside a new file, because one of the two
  // paths needs a directory where the other has a file. The result always has all layers of the
  // base, and one more if anything is new.
  bool keep_base = false;
};

// Accepts the bytes of a layer. A store hashes each blob that it receives, so the packer does not
// hash the layer.
class LayerSink : public Sink {
 public:
  // Called once, after the last Write(). Returns digest and size of the layer.
  virtual absl::StatusOr<Descriptor> End() = 0;
};

struct Packed {
  Config config;
  std::string config_text;
  std::string manifest_text;
  Manifest manifest;
  Digest digest;  // digest of the manifest; identifies the bundle
};

// Packs `files`: writes the new layer to `layer` and ends it (neither if the base bundle has all
// files), and returns manifest and config. Deterministic: the bytes depend on the paths, kinds,
// contents, mtimes, facts and base, not on the order of `files` or the number of threads.
//
// Blocks; writes to `layer` on the calling thread. The threads that it starts have ended on return.
// Memory: the raw and the packed bytes of `threads` + 1 frames, and the entry list.
//
// Errors: INVALID_ARGUMENT if `files` is empty or lists a path twice, if policy.h rejects a file or
// the union with the base, or if the bundle would have too many layers. ABORTED if the size of a
// file differs from PackFile::bytes. CANCELLED soon after `stop`. Otherwise the error of
// PackFile::open, of a source or of the sink.
absl::StatusOr<Packed> Pack(std::vector<PackFile> files, const Facts& facts,
                            const PackOptions& options, LayerSink& layer, std::stop_token stop);

}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/bundle/format.h"
#include "lib/bundle/policy.h"
#include "lib/bundle/stream.h"
#include "lib/bundle/unpack/needed.h"
#include "lib/bundle/worker_pool.h"
#include "lib/fs/dir.h"
#include "lib/fs/fd.h"

namespace cachewarm::bundle {

struct UnpackOptions {
  Limits limits;
  // Number of threads that verify, decompress and write, in addition to the calling thread.
  int threads = DefaultThreads();
  // Returns the mode of a file; unset: 0444. Called concurrently.
  std::function<mode_t(const Entry& entry)> mode_of;
  mode_t directory_mode = 0777;
  // Called concurrently, for each file after it was written and before it is closed. `entry` is an
  // element of Config::entries. Unset: nothing is called.
  std::function<absl::Status(const Entry& entry, const fs::Fd& file)> on_file;
  // One flag per entry of Config::entries: true for a file that `staging` already holds and that is
  // therefore not read. Empty: `staging` holds none of the files.
  PresentEntries present;
  // Returns false for a file that must not be created; its content is verified if it is read.
  // Called concurrently with elements of Config::entries. Unset: all files are created.
  std::function<bool(const Entry& entry)> wanted;
  // Compares the sha256 of every file with the entry list. If false, compares only the files of
  // older layers. Those of the newest layer are then verified by the sha256 of their frames, so an
  // entry list that contradicts this layer is not detected. This is no loss of security, because
  // the list and the newest layer have the same writer.
  bool check_contents = true;
  // Makes Start() create the directories; if false they must exist.
  bool make_directories = true;
  // Makes Finish() call syncfs, so that all files are durable when it returns
  // (docs/design/0047-durable-after-activation.md). If false, the caller must sync files and
  // directories if they are to survive a power cut. In both cases, the write-back of each file
  // begins when it is complete, so that a later sync is short.
  bool sync = true;
  // Keeps a file that exists already, because several bundles may be unpacked into one tree. The
  // bundle's content for that path is still verified. If false, an existing path causes
  // ALREADY_EXISTS.
  bool keep_existing = false;
};

// Unpacks the layers of one bundle into `staging`, to which nothing else may write. Verifies the
// sha256 of a frame before using its bytes. Creates only files of the entry list, with the listed
// size.
//
// After an error the caller must remove the staging directory. Errors: DATA_LOSS if bytes do not
// match their digest, INVALID_ARGUMENT for content that policy.h rejects, RESOURCE_EXHAUSTED if the
// disk is full. The error does not depend on the number of threads.
//
// Call on one thread at a time. Internal threads write the files; the destructor waits for them.
// Memory: the packed bytes of `threads` + 2 frames and the raw bytes of `threads` frames. File
// descriptors: at most DirHandles::kHandlesMax + 1 per thread.
class Unpacker : public Sink {
 public:
  // `config` must come from a verified blob; `config`, `manifest` and `staging` must outlive the
  // unpacker.
  Unpacker(const Config& config, const Manifest& manifest, const fs::Dir& staging,
           UnpackOptions options);
  ~Unpacker() override;

  // Checks the bundle and creates the directories if `make_directories`. Call first.
  absl::Status Start();
  // Returns the byte ranges of the layers that must be passed to Write(). Valid after Start().
  const std::vector<FrameRun>& runs() const;
  // Accepts the bytes of runs(), in order, in pieces of any size. Blocks while the threads are
  // busy.
  absl::Status Write(std::string_view bytes) override;
  // Waits until all files are written. DATA_LOSS if some are missing.
  absl::Status Finish();

 private:
  class Progress;
  std::unique_ptr<Progress> progress_;
};

// Checks a bundle before any layer is read. INVALID_ARGUMENT if counts, sizes or ratios exceed
// `limits`, or if the frame index does not cover the layers exactly.
absl::Status CheckBundle(const Manifest& manifest, const Config& config, const Limits& limits);

}  // namespace cachewarm::bundle

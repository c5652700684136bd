// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/bundle/crew.h"
#include "lib/bundle/format.h"
#include "lib/bundle/policy.h"
#include "lib/bundle/stream.h"
#include "lib/fs/dir.h"

namespace cachewarm::bundle {

struct UnpackOptions {
  Limits limits;
  int threads = DefaultThreads();  // that verify, decompress and write; beside the calling one
  // Mode of a file of this kind; unset: 0444. Called by several threads at the same time.
  std::function<mode_t(const std::string& kind)> mode_of_kind;
  mode_t directory_mode = 0777;
  // A generation is the union of several bundles: a path that an earlier one wrote stays as it is
  // (the later content is still verified). Without it such a path is ALREADY_EXISTS.
  bool keep_existing = false;
};

// Writes the layers of one bundle into `staging`, a directory that nobody else writes. Bytes are
// looked at only after their frame's sha256 was right; files only appear that the entry list
// names, with the size and sha256 it says. On any error the staging directory is worthless: the
// caller removes it (DATA_LOSS: bytes do not match; INVALID_ARGUMENT: refused by policy;
// RESOURCE_EXHAUSTED: disk full), and it is the same one whatever the number of threads. One thread
// at a time calls it; the files are written by threads of its own, which have ended when it is
// destroyed. Memory: packed bytes of threads + 2 frames, raw bytes of `threads`; at most
// kHandlesMax + 1 descriptors a thread.
class Unpacker : public Sink {
 public:
  // `config` must have come from a verified blob; it and `staging` must outlive the unpacker.
  Unpacker(const Config& config, const Manifest& manifest, const fs::Dir& staging,
           UnpackOptions options);
  ~Unpacker() override;

  // Checks the totals and makes the directories. First.
  absl::Status Start();
  // The bytes of the layers, in order, in pieces of any size. Blocks while the threads are behind.
  absl::Status Write(std::string_view bytes) override;
  // Waits until everything that the entry list names is there. Then syncfs once.
  absl::Status Finish();

 private:
  class Progress;
  std::unique_ptr<Progress> progress_;
};

// What can be told of a bundle before any layer is read: counts, sizes and ratio within `limits`,
// and a frame index that covers the layers exactly. INVALID_ARGUMENT.
absl::Status CheckBundle(const Manifest& manifest, const Config& config, const Limits& limits);

}  // namespace cachewarm::bundle

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
  int threads = DefaultThreads();  // that verify, decompress and write; beside the calling one
  // Mode of a file; unset: 0444. Called by several threads at the same time.
  std::function<mode_t(const Entry& entry)> mode_of;
  mode_t directory_mode = 0777;
  // After a file was written, before it is closed; by several threads at the same time. `entry` is
  // one of the config's.
  std::function<absl::Status(const Entry& entry, const fs::Fd& file)> on_file;
  // What `staging` holds already and need not be read. Sized as the entries, or empty.
  PresentEntries present;
  // Every file's sha256 is compared with the entry list too. Without it the bytes are still those
  // of the bundle, by the sha256 of their frames; a list that says otherwise of the newest layer,
  // which has the same maker, goes unnoticed.
  bool check_contents = true;
  // Start() makes the directories; without it they are there.
  bool make_directories = true;
  // Everything is on the disk when Finish() returns: one syncfs. Without it the caller does that,
  // once for several bundles; the kernel begins to write while files are made in any case.
  bool sync = true;
  // A generation is the union of several bundles: a path that an earlier one wrote stays as it is
  // (the later content is still verified). Without it such a path is ALREADY_EXISTS.
  bool keep_existing = false;
};

// Writes the layers of one bundle into `staging`, a directory that nobody else writes. Bytes are
// looked at only after their frame's sha256 was right; files only appear that the entry list
// names, with the size it says. On any error the staging directory is worthless: the
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

  // Checks the totals and makes the directories, if asked for. First.
  absl::Status Start();
  // What of the layers is to be written, after Start().
  const std::vector<FrameRun>& runs() const;
  // The bytes of the runs, in order, in pieces of any size. Blocks while the threads are behind.
  absl::Status Write(std::string_view bytes) override;
  // Waits until everything that the entry list names is there.
  absl::Status Finish();

 private:
  class Progress;
  std::unique_ptr<Progress> progress_;
};

// What can be told of a bundle before any layer is read: counts, sizes and ratio within `limits`,
// and a frame index that covers the layers exactly. INVALID_ARGUMENT.
absl::Status CheckBundle(const Manifest& manifest, const Config& config, const Limits& limits);

}  // namespace cachewarm::bundle

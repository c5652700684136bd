// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "lib/bundle/buffer.h"
#include "lib/bundle/format.h"
#include "lib/bundle/frame_codec.h"
#include "lib/bundle/stream.h"
#include "lib/bundle/worker_pool.h"

namespace cachewarm::bundle {

// A frame that had the right sha256, decompressed.
struct RawFrame {
  int64_t index = 0;     // through all layers
  int64_t position = 0;  // among the frames that are read
  std::string_view raw;
  size_t worker = 0;  // of a FrameStream: 0 to threads() - 1
  WorkerPool& pool;

  // Blocks until the frames before this one have been handled; the error of one of them.
  absl::Status AwaitEarlier() const { return pool.Wait(position - 1); }
};

// Cuts bytes of a bundle's layers into frames, of which workers verify the sha256 and decompress
// them. One thread at a time. Write() blocks while threads + 2 frames are not done yet:
// with as many packed ones and one raw frame for each worker that is the memory it takes. The
// first error is that of the first bad frame, whatever the number of threads; destroyed at any
// moment it waits only for the frames that are being worked on.
class FrameStream : public Sink {
 public:
  // In a worker, several at the same time. `frame` is valid during the call.
  using OnFrame = std::function<absl::Status(const RawFrame& frame)>;

  // `config` must be one that CheckBundle() accepts. `needed` in ascending order: the frames that
  // will be written, without what lies between them.
  FrameStream(const Config& config, const std::vector<int64_t>& needed, int threads,
              OnFrame on_frame);

  int threads() const { return pool_.threads(); }
  // DATA_LOSS at a frame that is not what its digest says, and for bytes after the last.
  absl::Status Write(std::string_view bytes) override;
  // Every frame has been handled. DATA_LOSS when frames are missing.
  absl::Status Finish();

 private:
  struct Worker {
    FrameReader reader;
    Buffer raw;
  };

  void Post();
  absl::Status Handle(int64_t position, std::string_view packed, size_t worker);

  struct NeededFrame {
    int64_t index = 0;  // through all layers
    Frame frame;
  };

  std::vector<NeededFrame> frames_;
  OnFrame on_frame_;
  std::vector<Buffer> packed_;  // a ring: position n lies in n modulo its size
  std::vector<Worker> workers_;
  int64_t next_ = 0;              // position of the frame that is being gathered
  std::span<char> frame_buffer_;  // of it
  size_t gathered_bytes_ = 0;     // of it
  WorkerPool pool_;               // last: its threads use all of the above
};

}  // namespace cachewarm::bundle

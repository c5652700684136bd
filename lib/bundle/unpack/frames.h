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

// A verified and decompressed frame.
struct RawFrame {
  int64_t index = 0;     // counted across all layers
  int64_t position = 0;  // index among the frames that are passed to Write()
  std::string_view raw;
  size_t worker = 0;  // thread that handles the frame: 0 to threads() - 1 of the FrameStream
  WorkerPool& pool;

  // Blocks until all earlier frames have been handled. Returns the error of the first that failed.
  absl::Status AwaitEarlier() const { return pool.Wait(position - 1); }
};

// Splits the bytes of a bundle's layers into frames, which worker threads verify and decompress.
// Call on one thread at a time. Write() blocks while threads + 2 frames are pending. Memory: the
// compressed bytes of that many frames, and one decompressed frame per worker. The reported error
// is that of the first bad frame, for any number of threads. The destructor waits only for the
// frames in progress.
class FrameStream : public Sink {
 public:
  // Called concurrently on the worker threads. `frame` is valid during the call.
  using OnFrame = std::function<absl::Status(const RawFrame& frame)>;

  // CheckBundle() must have accepted `config`. `needed` holds the indices of the frames that will
  // be passed to Write(), ascending; the bytes of all other frames must not be passed.
  FrameStream(const Config& config, const std::vector<int64_t>& needed, int threads,
              OnFrame on_frame);

  int threads() const { return pool_.threads(); }
  // Accepts the bytes of the needed frames, in order. DATA_LOSS if a frame does not match its
  // digest, or if there are bytes after the last frame.
  absl::Status Write(std::string_view bytes) override;
  // Waits until every frame has been handled. DATA_LOSS if frames are missing.
  absl::Status Finish();

 private:
  struct Worker {
    FrameReader reader;
    Buffer raw;
  };

  void Post();
  absl::Status Handle(int64_t position, std::string_view packed, size_t worker);

  struct NeededFrame {
    int64_t index = 0;  // counted across all layers
    Frame frame;
  };

  std::vector<NeededFrame> frames_;
  OnFrame on_frame_;
  std::vector<Buffer> packed_;  // ring buffer: position n is at index n % size()
  std::vector<Worker> workers_;
  int64_t next_ = 0;              // position of the frame that is being gathered
  std::span<char> frame_buffer_;  // buffer of that frame
  size_t gathered_bytes_ = 0;     // bytes of that frame that have arrived
  WorkerPool pool_;               // declared last: its threads use the other members
};

}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/pack/layer.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "lib/base/digest.h"
#include "lib/base/status.h"
#include "lib/bundle/buffer.h"
#include "lib/bundle/frame_codec.h"
#include "lib/bundle/pack/cut.h"
#include "lib/bundle/pack/duplicates.h"
#include "lib/bundle/pack/file_digest.h"
#include "lib/bundle/pack/member_reader.h"
#include "lib/bundle/worker_pool.h"

namespace cachewarm::bundle {
namespace {

// The buffers of one frame: its content, and the compressed bytes that go to the sink.
struct FrameBuffers {
  Buffer raw;
  Buffer packed;
  Digest digest;  // of `packed`
};

// The members of the tar and its division into frames.
struct Plan {
  std::vector<int64_t> member_bytes;
  std::vector<size_t> order;
  std::vector<Cut> cuts;

  std::span<const size_t> MembersOf(const Cut& cut) const {
    return std::span(order).subspan(cut.first, cut.members);
  }
};

// Returns, for each member, the member whose content it shares, or its own index.
std::vector<size_t> FrameMates(const PackTree& tree) {
  std::vector<size_t> mates(tree.members());
  std::iota(mates.begin(), mates.end(), size_t{0});
  for (size_t file = 0; file < tree.content_of.size(); ++file) {
    mates[tree.before_files() + file] = tree.before_files() + tree.content_of[file];
  }
  return mates;
}

absl::StatusOr<Plan> PlanLayer(PackTree& tree, const PackOptions& options,
                               const std::stop_token& stop) {
  CW_RETURN_IF_ERROR(FindDuplicates(tree, options.frame_bytes, options.threads, stop));
  Plan plan;
  CW_ASSIGN_OR_RETURN(plan.member_bytes, MemberBytes(tree, options.threads));
  OrderedCuts ordered = CutWithMates(plan.member_bytes, FrameMates(tree), options.frame_bytes);
  plan.order = std::move(ordered.order);
  plan.cuts = std::move(ordered.cuts);
  for (size_t frame = 0; frame < plan.cuts.size(); ++frame) {
    const Cut& cut = plan.cuts[frame];
    for (const size_t member : plan.MembersOf(cut)) {
      if (cut.from == 0 && tree.IsFile(member)) {
        tree.entries[tree.FileOf(member)].frame = static_cast<int64_t>(frame);
      }
    }
  }
  return plan;
}

// Reads and compresses frames, on one worker thread.
class FrameMaker {
 public:
  FrameMaker(PackTree& tree, const Plan& plan, int level)
      : tree_(tree), plan_(plan), writer_(level) {}

  // If the frame holds a part of a large member, `shared` reads that member; otherwise it is null.
  absl::Status Make(const Cut& cut, SharedMember* shared, FrameBuffers& work) {
    const std::span<char> raw = work.raw.Make(static_cast<size_t>(cut.bytes));
    CW_RETURN_IF_ERROR(shared == nullptr ? Fill(cut, raw) : shared->Read(cut.from, raw));
    CW_RETURN_IF_ERROR(writer_.Compress(work.raw.view(), work.packed));
    work.digest = DigestOf(work.packed.view());
    return absl::OkStatus();
  }

 private:
  absl::Status Fill(const Cut& cut, std::span<char> raw) {
    for (const size_t member : plan_.MembersOf(cut)) {
      const auto bytes = static_cast<size_t>(plan_.member_bytes[member]);
      CW_ASSIGN_OR_RETURN(const std::string_view content,
                          MemberReader(tree_, member).Read(raw.first(bytes)));
      if (tree_.IsFile(member) && !tree_.IsLink(member)) {
        CW_RETURN_IF_ERROR(CheckDigest(tree_.FileOf(member), content));
      }
      raw = raw.subspan(bytes);
    }
    // Only the frame that ends the archive has bytes left here: it is all zeros.
    std::fill(raw.begin(), raw.end(), '\0');
    return absl::OkStatus();
  }

  // Sets the digest of a file. ABORTED if FindDuplicates() has set a different one: the file has
  // changed since then.
  absl::Status CheckDigest(size_t file, std::string_view content) {
    Entry& entry = tree_.entries[file];
    Digest digest = DigestOf(content);
    if (!entry.digest.empty() && entry.digest != digest) {
      return ChangedWhileRead(tree_.files[file]);
    }
    entry.digest = std::move(digest);
    return absl::OkStatus();
  }

  PackTree& tree_;
  const Plan& plan_;
  FrameWriter writer_;
};

// Writes finished frames to the sink in order, on the calling thread.
class FrameEmitter {
 public:
  explicit FrameEmitter(LayerSink& sink) : sink_(sink) {}

  absl::Status Emit(const FrameBuffers& work) {
    const std::string_view packed = work.packed.view();
    index_.frames.push_back({.offset = bytes_,
                             .bytes = static_cast<int64_t>(packed.size()),
                             .raw_bytes = static_cast<int64_t>(work.raw.size()),
                             .digest = work.digest});
    raw_hash_.Update(work.raw.view());
    bytes_ += static_cast<int64_t>(packed.size());
    return sink_.Write(packed);
  }

  absl::StatusOr<Layer> Finish() {
    CW_ASSIGN_OR_RETURN(Descriptor blob, sink_.End());
    if (blob.bytes != bytes_) {
      return absl::DataLossError(fmt::format(
          "the store has {} bytes of the layer, but {} were written", blob.bytes, bytes_));
    }
    index_.diff_id = raw_hash_.Finish();
    blob.media_type = std::string(kLayerType);
    return Layer{.index = std::move(index_), .blob = std::move(blob)};
  }

 private:
  LayerSink& sink_;
  int64_t bytes_ = 0;
  Sha256 raw_hash_;
  LayerIndex index_;
};

// Makes the frames of one layer on several worker threads, a bounded number of frames ahead of the
// sink.
class FramePipeline {
 public:
  FramePipeline(PackTree& tree, const Plan& plan, const PackOptions& options)
      : tree_(tree), plan_(plan), pool_(options.threads) {
    for (int i = 0; i < pool_.threads(); ++i) {
      makers_.emplace_back(tree, plan, options.level);
    }
    // One buffer for each worker and one for the sink.
    buffers_.resize(makers_.size() + 1);
  }

  // Blocks until frame `number` is made and returns it. Call with 0, 1, 2 ... The result is valid
  // until the next call.
  absl::StatusOr<const FrameBuffers*> Next(size_t number) {
    while (posted_ < std::min(plan_.cuts.size(), number + buffers_.size())) {
      Post(posted_++);
    }
    CW_RETURN_IF_ERROR(pool_.Wait(static_cast<int64_t>(number)));
    return &buffers_[number % buffers_.size()];
  }

 private:
  // `member` is a file: only files can be larger than a frame.
  std::shared_ptr<SharedMember> Share(size_t member) {
    return std::make_shared<SharedMember>(tree_, member, tree_.entries[tree_.FileOf(member)]);
  }

  void Post(size_t number) {
    const Cut& cut = plan_.cuts[number];
    if (cut.from == 0) {
      const bool is_one = cut.members == 1;
      const size_t member = is_one ? plan_.order[cut.first] : 0;
      const bool continues = is_one && cut.bytes < plan_.member_bytes[member];
      shared_ = continues ? Share(member) : nullptr;
    }
    pool_.Post([this, &cut, &work = buffers_[number % buffers_.size()], shared = shared_](
                   size_t worker) { return makers_[worker].Make(cut, shared.get(), work); });
  }

  PackTree& tree_;
  const Plan& plan_;
  std::vector<FrameMaker> makers_;     // by worker
  std::vector<FrameBuffers> buffers_;  // ring buffer: frame n is at index n % size()
  // Reads the large member to which the last posted frame belongs; null if that frame holds whole
  // members.
  std::shared_ptr<SharedMember> shared_;
  size_t posted_ = 0;
  WorkerPool pool_;  // declared last: its threads use the other members
};

}  // namespace

absl::StatusOr<Layer> WriteLayer(PackTree& tree, const PackOptions& options, LayerSink& sink,
                                 const std::stop_token& stop) {
  CW_ASSIGN_OR_RETURN(const Plan plan, PlanLayer(tree, options, stop));
  FramePipeline pipeline(tree, plan, options);
  FrameEmitter emitter(sink);
  for (size_t number = 0; number < plan.cuts.size(); ++number) {
    if (stop.stop_requested()) {
      return absl::CancelledError("packing was stopped");
    }
    CW_ASSIGN_OR_RETURN(const FrameBuffers* made, pipeline.Next(number));
    CW_RETURN_IF_ERROR(emitter.Emit(*made));
  }
  return emitter.Finish();
}

}  // namespace cachewarm::bundle

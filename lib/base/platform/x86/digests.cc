// SPDX-License-Identifier: Apache-2.0
#include "lib/base/digests.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "lib/base/platform/x86/sha256_blocks.h"

namespace cachewarm {
namespace {

using x86::kBlockBytes;

// One text on its way: its whole blocks where they lie, then its end with the padding of
// FIPS 180-4 §5.1.1.
class Hashing {
 public:
  void Begin(std::string_view text, size_t index) {
    state_ = x86::kSha256Start;
    index_ = index;
    next_ = text.data();
    blocks_ = text.size() / kBlockBytes;
    const size_t whole = blocks_ * kBlockBytes;
    const size_t rest = text.size() - whole;
    end_.fill('\0');
    std::copy_n(text.data() + whole, rest, end_.begin());
    end_[rest] = static_cast<char>(0x80);
    end_blocks_ = rest + 1 + sizeof(uint64_t) <= kBlockBytes ? 1 : 2;
    const uint64_t bits = uint64_t{text.size()} * 8;
    for (size_t i = 0; i < sizeof(bits); ++i) {
      end_[end_blocks_ * kBlockBytes - 1 - i] = static_cast<char>(bits >> (8 * i));
    }
    Turn();
  }

  bool busy() const { return blocks_ > 0; }
  size_t index() const { return index_; }
  size_t blocks() const { return blocks_; }
  x86::Sha256Lane lane() { return {.state = &state_, .text = next_}; }

  void Advance(size_t blocks) {
    next_ += blocks * kBlockBytes;
    blocks_ -= blocks;
    Turn();
  }

  Digest Finish() const {
    std::string hex;
    for (const uint32_t word : state_) {
      fmt::format_to(std::back_inserter(hex), "{:08x}", word);
    }
    return Digest::FromHex(hex);
  }

 private:
  // To the end of the text, once.
  void Turn() {
    if (blocks_ == 0 && end_blocks_ > 0) {
      next_ = end_.data();
      blocks_ = std::exchange(end_blocks_, 0);
    }
  }

  x86::Sha256State state_{};
  size_t index_ = 0;
  const char* next_ = nullptr;
  size_t blocks_ = 0;
  std::array<char, 2 * kBlockBytes> end_{};
  size_t end_blocks_ = 0;
};

// Hashes on until one of the two has ended.
void Step(Hashing& a, Hashing& b) {
  if (a.busy() && b.busy()) {
    const size_t blocks = std::min(a.blocks(), b.blocks());
    x86::HashBlocks(a.lane(), b.lane(), blocks);
    a.Advance(blocks);
    b.Advance(blocks);
    return;
  }
  Hashing& alone = a.busy() ? a : b;
  const size_t blocks = alone.blocks();
  x86::HashBlocks(alone.lane(), blocks);
  alone.Advance(blocks);
}

// The longest first, so that none is left to be hashed alone at the end.
std::vector<size_t> LongestFirst(std::span<const std::string_view> texts) {
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return texts[a].size() > texts[b].size(); });
  return order;
}

std::vector<Digest> InPairs(std::span<const std::string_view> texts) {
  std::vector<Digest> digests(texts.size());
  const std::vector<size_t> order = LongestFirst(texts);
  std::array<Hashing, 2> pair;
  size_t begun = 0;
  size_t ended = 0;
  while (ended < texts.size()) {
    for (Hashing& each : pair) {
      if (!each.busy() && begun < texts.size()) {
        const size_t index = order[begun++];
        each.Begin(texts[index], index);
      }
    }
    const std::array was_busy = {pair[0].busy(), pair[1].busy()};
    Step(pair[0], pair[1]);
    for (size_t i = 0; i < pair.size(); ++i) {
      if (was_busy[i] && !pair[i].busy()) {
        digests[pair[i].index()] = pair[i].Finish();
        ++ended;
      }
    }
  }
  return digests;
}

}  // namespace

std::vector<Digest> DigestsOf(std::span<const std::string_view> texts) {
  if (x86::HasSha256Instructions()) {
    return InPairs(texts);
  }
  std::vector<Digest> digests;
  digests.reserve(texts.size());
  for (const std::string_view text : texts) {
    digests.push_back(DigestOf(text));
  }
  return digests;
}

}  // namespace cachewarm

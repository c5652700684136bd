// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/packer.h"

#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/pack/difference.h"
#include "lib/bundle/pack/layer.h"
#include "lib/bundle/pack/tree.h"
#include "lib/bundle/tar.h"

namespace cachewarm::bundle {
namespace {

// A frame holds at least the headers of a member with the longest path and some content.
constexpr int64_t kFrameBytesMin = 8 * kTarBlockBytes;

absl::StatusOr<Packed> Describe(Config config, std::vector<Descriptor> layers) {
  Packed packed{.config = std::move(config)};
  CW_ASSIGN_OR_RETURN(packed.config_text, WriteConfig(packed.config));
  packed.manifest = {.config = {.media_type = std::string(kConfigType),
                                .digest = DigestOf(packed.config_text),
                                .bytes = static_cast<int64_t>(packed.config_text.size())},
                     .layers = std::move(layers)};
  CW_ASSIGN_OR_RETURN(packed.manifest_text, WriteManifest(packed.manifest));
  packed.digest = DigestOf(packed.manifest_text);
  return packed;
}

// What of `tree` is not kept, as a layer of its own.
PackTree TakeNew(PackTree& tree, const std::vector<const Entry*>& kept, const Config& base) {
  PackTree added{.whiteouts = WhiteoutsOf(base, tree)};
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] == nullptr) {
      added.files.push_back(std::move(tree.files[i]));
      added.entries.push_back(tree.entries[i]);
    }
  }
  const auto directories = ImpliedDirectories(added.entries);
  added.directories.assign(directories.begin(), directories.end());
  return added;
}

// The layers of the base and, unless it would be empty, one more.
absl::StatusOr<Packed> PackUpon(PackTree tree, const std::vector<const Entry*>& kept,
                                const Facts& facts, const PackOptions& options, Sink& layer,
                                const std::stop_token& stop) {
  const Bundle& base = *options.base;
  Config config{.facts = facts, .entries = tree.entries, .layers = base.config.layers};
  std::vector<Descriptor> layers = base.manifest.layers;
  PackTree added = TakeNew(tree, kept, base.config);
  if (added.members() > 0) {
    CW_ASSIGN_OR_RETURN(Layer written, WriteLayer(added, options, layer, stop));
    config.layers.push_back(std::move(written.index));
    layers.push_back(written.blob);
  }
  auto next = added.entries.begin();
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] != nullptr) {
      config.entries[i] = *kept[i];
      continue;
    }
    config.entries[i] = *next++;
    config.entries[i].frame += FrameCount(base.config);
  }
  return Describe(std::move(config), std::move(layers));
}

}  // namespace

absl::StatusOr<Packed> Pack(std::vector<PackFile> files, const Facts& facts,
                            const PackOptions& options, Sink& layer, std::stop_token stop) {
  if (options.frame_bytes < kFrameBytesMin || options.frame_bytes % kTarBlockBytes != 0 ||
      options.frame_bytes > options.limits.frame_raw_bytes_max) {
    return absl::InvalidArgumentError(
        fmt::format("frame_bytes: {} is not a multiple of {} within {} and {}", options.frame_bytes,
                    kTarBlockBytes, kFrameBytesMin, options.limits.frame_raw_bytes_max));
  }
  CW_ASSIGN_OR_RETURN(PackTree tree, ArrangeTree(std::move(files), options.limits));
  if (options.base != nullptr) {
    CW_ASSIGN_OR_RETURN(const std::vector<const Entry*> kept,
                        FindKept(*options.base, tree, options.threads, stop));
    if (IsWorthALayer(*options.base, kept, tree)) {
      return PackUpon(std::move(tree), kept, facts, options, layer, stop);
    }
  }
  CW_ASSIGN_OR_RETURN(Layer written, WriteLayer(tree, options, layer, stop));
  return Describe(
      {.facts = facts, .entries = std::move(tree.entries), .layers = {std::move(written.index)}},
      {written.blob});
}

}  // namespace cachewarm::bundle

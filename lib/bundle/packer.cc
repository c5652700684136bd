// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/packer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/pack/difference.h"
#include "lib/bundle/pack/layer.h"
#include "lib/bundle/pack/tree.h"
#include "lib/bundle/tar.h"

namespace cachewarm::bundle {
namespace {

// Minimum of PackOptions::frame_bytes: enough for the headers of the longest path and some content.
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

// Moves the new files (null in `kept`) to a separate tree, which becomes the new layer.
PackTree ExtractNewFiles(PackTree& tree, const std::vector<const Entry*>& kept,
                         std::vector<std::string> whiteouts) {
  PackTree added{.whiteouts = std::move(whiteouts)};
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

// The entries that a bundle reuses from its base.
struct BaseReuse {
  // For each file of the tree, the equal entry of the base; null if the file is new.
  std::vector<const Entry*> same;
  // Entries that the tree lacks and that the bundle keeps from the base.
  std::vector<Entry> staying;
  std::vector<std::string> whiteouts;  // each removes a file or directory of the base
};

// Checks the union of the base bundle and the tree against the limits, and the number of layers.
// The tree alone has been checked already.
absl::Status CheckUnion(const PackTree& tree, const BaseReuse& kept, const PackOptions& options) {
  Totals totals{.entries = static_cast<int64_t>(tree.entries.size() + kept.staying.size())};
  for (const auto* entries : {&tree.entries, &kept.staying}) {
    for (const Entry& entry : *entries) {
      totals.raw_bytes += entry.bytes;
    }
  }
  totals.frame_bytes = totals.raw_bytes;
  totals.packed_bytes = totals.raw_bytes;
  CW_RETURN_IF_ERROR(CheckTotals(totals, options.limits));
  const size_t layers = options.base->manifest.layers.size();
  return layers < static_cast<size_t>(kLayersMax)
             ? absl::OkStatus()
             : absl::InvalidArgumentError(
                   fmt::format("the base bundle already has the maximum of {} layers", layers));
}

// Returns a bundle with the layers of the base and one new layer, which is written to `layer`.
// Omits the new layer if it would be empty.
absl::StatusOr<Packed> PackOntoBase(PackTree tree, BaseReuse kept, const Facts& facts,
                                    const PackOptions& options, LayerSink& layer,
                                    const std::stop_token& stop) {
  const Bundle& base = *options.base;
  Config config{.facts = facts, .entries = tree.entries, .layers = base.config.layers};
  std::vector<Descriptor> layers = base.manifest.layers;
  PackTree added = ExtractNewFiles(tree, kept.same, std::move(kept.whiteouts));
  if (added.members() > 0) {
    CW_ASSIGN_OR_RETURN(Layer written, WriteLayer(added, options, layer, stop));
    config.layers.push_back(std::move(written.index));
    layers.push_back(written.blob);
  }
  auto next = added.entries.begin();
  for (size_t i = 0; i < kept.same.size(); ++i) {
    if (kept.same[i] != nullptr) {
      config.entries[i] = *kept.same[i];
      continue;
    }
    config.entries[i] = *next++;
    config.entries[i].frame += FrameCount(base.config);
  }
  std::move(kept.staying.begin(), kept.staying.end(), std::back_inserter(config.entries));
  std::sort(config.entries.begin(), config.entries.end(),
            [](const Entry& a, const Entry& b) { return a.path < b.path; });
  return Describe(std::move(config), std::move(layers));
}

}  // namespace

absl::StatusOr<Packed> Pack(std::vector<PackFile> files, const Facts& facts,
                            const PackOptions& options, LayerSink& layer, std::stop_token stop) {
  if (options.frame_bytes < kFrameBytesMin || options.frame_bytes % kTarBlockBytes != 0 ||
      options.frame_bytes > options.limits.frame_raw_bytes_max) {
    return absl::InvalidArgumentError(fmt::format(
        "frame_bytes: {} is not a multiple of {} between {} and {}", options.frame_bytes,
        kTarBlockBytes, kFrameBytesMin, options.limits.frame_raw_bytes_max));
  }
  if (options.keep_base && options.base == nullptr) {
    return absl::InvalidArgumentError("keep_base needs a base bundle");
  }
  CW_ASSIGN_OR_RETURN(PackTree tree, ArrangeTree(std::move(files), options.limits));
  if (options.base != nullptr) {
    BaseReuse kept;
    CW_ASSIGN_OR_RETURN(kept.same, FindUnchanged(*options.base, tree, options.threads, stop));
    if (options.keep_base) {
      kept.staying = RetainedEntries(options.base->config, tree);
      CW_RETURN_IF_ERROR(CheckUnion(tree, kept, options));
      return PackOntoBase(std::move(tree), std::move(kept), facts, options, layer, stop);
    }
    if (IsLayerWorthwhile(*options.base, kept.same, tree)) {
      kept.whiteouts = WhiteoutsOf(options.base->config, tree);
      return PackOntoBase(std::move(tree), std::move(kept), facts, options, layer, stop);
    }
  }
  CW_ASSIGN_OR_RETURN(Layer written, WriteLayer(tree, options, layer, stop));
  return Describe(
      {.facts = facts, .entries = std::move(tree.entries), .layers = {std::move(written.index)}},
      {written.blob});
}

}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/packer.h"

#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/pack/layer.h"
#include "lib/bundle/pack/tree.h"
#include "lib/bundle/tar.h"

namespace cachewarm::bundle {
namespace {

// A frame holds at least the headers of a member with the longest path and some content.
constexpr int64_t kFrameBytesMin = 8 * kTarBlockBytes;

absl::StatusOr<Packed> Describe(Config config, const Descriptor& layer) {
  Packed packed{.config = std::move(config)};
  CW_ASSIGN_OR_RETURN(packed.config_text, WriteConfig(packed.config));
  packed.manifest = {.config = {.media_type = std::string(kConfigType),
                                .digest = DigestOf(packed.config_text),
                                .bytes = static_cast<int64_t>(packed.config_text.size())},
                     .layers = {layer}};
  CW_ASSIGN_OR_RETURN(packed.manifest_text, WriteManifest(packed.manifest));
  packed.digest = DigestOf(packed.manifest_text);
  return packed;
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
  CW_ASSIGN_OR_RETURN(Layer written, WriteLayer(tree, options, layer, stop));
  return Describe(
      {.facts = facts, .entries = std::move(tree.entries), .layers = {std::move(written.index)}},
      written.blob);
}

}  // namespace cachewarm::bundle

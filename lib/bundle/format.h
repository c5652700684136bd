// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/digest.h"
#include "lib/codec/json.h"

// The bundle as bytes: an OCI 1.1 image manifest, an image config with one field of ours, and
// tar+zstd layers. Pure: text in, text out. The same bundle always gives the same text.
namespace cachewarm::bundle {

inline constexpr std::string_view kArtifactType = "application/vnd.cachewarm.bundle.v1";
inline constexpr std::string_view kManifestType = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kConfigType = "application/vnd.oci.image.config.v1+json";
inline constexpr std::string_view kLayerType = "application/vnd.oci.image.layer.v1.tar+zstd";

inline constexpr int64_t kManifestBytesMax = 4LL << 20;
// What a registry serves as a manifest or an index is nobody's but its writer's.
inline constexpr codec::JsonLimits kManifestLimits{.bytes_max = size_t{kManifestBytesMax},
                                                   .values_max = 256U << 10U};
inline constexpr int64_t kConfigBytesMax = 64LL << 20;
// One for each pod of the largest group, upon what was there before (docs/design/0018).
inline constexpr int kLayersMax = 96;

// Names a blob.
struct Descriptor {
  std::string media_type;
  Digest digest;
  int64_t bytes = 0;

  friend bool operator==(const Descriptor&, const Descriptor&) = default;
};

struct Manifest {
  Descriptor config;
  std::vector<Descriptor> layers;
  std::map<std::string, std::string> annotations;
};

// One file of the bundle. Directories are those that the paths imply.
struct Entry {
  std::string path;  // "inductor/ab/cab.py": relative, UTF-8
  std::string kind;  // of lib/caches: decides mode, mtime and linking on the node
  int64_t bytes = 0;
  Digest digest;
  int64_t mtime_ns = 0;  // since 1970; 0 for kinds that do not compare it
  // The frame that holds its tar header, counted from 0 through all layers. Entries of one frame
  // lie there in the order of the list. One that has the content of an earlier one of its frame may
  // be a hard link to it there; on a node each is a file of its own.
  int64_t frame = 0;

  friend bool operator==(const Entry&, const Entry&) = default;
};

// One independent zstd frame of a layer: it decompresses, and is verified, on its own. It holds
// whole tar members, or a part of the one member that is larger than a frame (then nothing else).
struct Frame {
  int64_t offset = 0;  // in the layer blob
  int64_t bytes = 0;   // compressed
  int64_t raw_bytes = 0;
  Digest digest;  // of the compressed bytes

  friend bool operator==(const Frame&, const Frame&) = default;
};

struct LayerIndex {
  Digest diff_id;  // of the whole uncompressed tar
  std::vector<Frame> frames;
};

// What the bundle was made from and what it asks of a node.
struct Facts {
  std::string architecture = "amd64";          // as OCI names it
  std::string key;                             // 64 hex digits, lib/fingerprint
  std::map<std::string, std::string> factors;  // what the key is the hash of
  std::map<std::string, std::string> node;     // driver, raw CPU flags...
  std::map<std::string, std::string> engines;  // "torch": "2.15.0"
  bool requires_cpu_class = false;             // holds native host code
  std::vector<std::string> gpu_architectures;  // sorted
  int64_t compile_milliseconds = 0;            // found in the entries; what a hit saves

  friend bool operator==(const Facts&, const Facts&) = default;
};

struct Config {
  Facts facts;
  std::vector<Entry> entries;      // by path in byte order, no duplicate
  std::vector<LayerIndex> layers;  // in the order of Manifest::layers
};

// A bundle without the content of its layers.
struct Bundle {
  Digest digest;
  Manifest manifest;
  Config config;
};

struct FormatLimits {
  int64_t entries_max = 200'000;
  int64_t frames_max = 100'000;  // of all layers
};

absl::StatusOr<std::string> WriteManifest(const Manifest& manifest);
// Strict: another media type, artifact type or schema, a bad digest, a negative size, no layer or
// more than kLayersMax is INVALID_ARGUMENT naming the field. Unknown fields are ignored, as OCI
// asks for.
absl::StatusOr<Manifest> ParseManifest(std::string_view text);

absl::StatusOr<std::string> WriteConfig(const Config& config);
// Strict too: entries must be sorted, unique and pass policy.h's CheckPath; the frames of a layer
// must follow one another without a gap from offset 0.
absl::StatusOr<Config> ParseConfig(std::string_view text, const FormatLimits& limits = {});

// Every directory that the paths of `entries` imply, parents before children.
std::set<std::string, std::less<>> ImpliedDirectories(const std::vector<Entry>& entries);

// The number of frames in all layers.
int64_t FrameCount(const Config& config);
// The sum of the entries' sizes.
int64_t RawBytes(const Config& config);
// The sum of all frames, uncompressed.
int64_t FrameBytes(const Config& config);
// The sum of config and layers: what a fetch moves.
int64_t PackedBytes(const Manifest& manifest);

}  // namespace cachewarm::bundle

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

// The format of a bundle: an OCI 1.1 image manifest, an image config with the additional field
// "cachewarm", and tar+zstd layers. Pure and deterministic.
namespace cachewarm::bundle {

inline constexpr std::string_view kArtifactType = "application/vnd.cachewarm.bundle.v1";
inline constexpr std::string_view kManifestType = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kConfigType = "application/vnd.oci.image.config.v1+json";
inline constexpr std::string_view kLayerType = "application/vnd.oci.image.layer.v1.tar+zstd";

inline constexpr int64_t kManifestBytesMax = 4LL << 20;
// Limits of the JSON of manifests and image indexes, which are untrusted.
inline constexpr codec::JsonLimits kManifestLimits{.bytes_max = size_t{kManifestBytesMax},
                                                   .values_max = 256U << 10U};
inline constexpr int64_t kConfigBytesMax = 64LL << 20;
// Maximum number of layers of a bundle. It must suffice for a group of pods that captures one
// bundle together: each pod adds at most one layer to those of the base bundle (docs/design/0018).
inline constexpr int kLayersMax = 96;

// Identifies a blob.
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

// One file of the bundle. Directories have no entry: the paths of the files imply them.
struct Entry {
  std::string path;  // "inductor/ab/cab.py": relative, UTF-8
  // Cache kind (lib/caches). Determines the mode and mtime that the file gets on a node, and
  // whether it may be a hard link there.
  std::string kind;
  int64_t bytes = 0;
  Digest digest;
  int64_t mtime_ns = 0;  // nanoseconds since 1970; 0 if the readers of this kind ignore mtimes
  // Index of the frame that holds the file's tar header. Frames are numbered from 0 across all
  // layers. The files of a frame are in the order of the entry list. In the tar, a file may be a
  // hard link to an earlier file with equal content in the same frame; unpacking then copies the
  // content, so that each entry becomes a separate file.
  int64_t frame = 0;

  friend bool operator==(const Entry&, const Entry&) = default;
};

// One zstd frame of a layer. Each frame is verified and decompressed independently. It holds either
// whole tar members or a part of one member that is larger than a frame.
struct Frame {
  int64_t offset = 0;     // offset in the layer blob
  int64_t bytes = 0;      // compressed size
  int64_t raw_bytes = 0;  // uncompressed size
  Digest digest;          // digest of the compressed bytes

  friend bool operator==(const Frame&, const Frame&) = default;
};

struct LayerIndex {
  Digest diff_id;  // digest of the uncompressed tar
  std::vector<Frame> frames;
};

// Describes the origin of a bundle and its requirements on a node.
struct Facts {
  std::string architecture = "amd64";          // CPU architecture, as OCI names it
  std::string key;                             // bundle key (lib/fingerprint): 64 hex digits
  std::map<std::string, std::string> factors;  // the inputs of the key's hash, by name
  // Facts of the node on which the bundle was captured: driver, raw CPU flags, ...
  std::map<std::string, std::string> node;
  std::map<std::string, std::string> engines;  // version of each engine: "torch": "2.15.0"
  // Salted hashes of the parts of the engine's own cache key (lib/capture/engine_factors.h); empty
  // if the builder's engine wrote none.
  std::map<std::string, std::string> engine_factors;
  // True if the bundle has CPU code. It then fits only nodes of its CPU class.
  bool requires_cpu_class = false;
  std::vector<std::string>
      gpu_architectures;  // "sm_90a", "compute_90", "gfx942", sorted; empty: no GPU code
  // Total compile time that the files record; a cache hit saves it.
  int64_t compile_milliseconds = 0;

  friend bool operator==(const Facts&, const Facts&) = default;
};

struct Config {
  Facts facts;
  std::vector<Entry> entries;      // sorted by path in byte order, no duplicate path
  std::vector<LayerIndex> layers;  // in the order of Manifest::layers
};

// The parts of a bundle that are known before its layers are read.
struct Bundle {
  Digest digest;
  Manifest manifest;
  Config config;
};

struct FormatLimits {
  int64_t entries_max = 200'000;
  int64_t frames_max = 100'000;  // per layer
};

// Returns the canonical JSON of a manifest.
absl::StatusOr<std::string> WriteManifest(const Manifest& manifest);
// Parses a manifest. Ignores unknown fields, as OCI requires. The manifest must have the media
// types, artifact type and schema version of a bundle, well-formed digests and sizes, and 1 to
// kLayersMax layers. Otherwise INVALID_ARGUMENT, naming the field.
absl::StatusOr<Manifest> ParseManifest(std::string_view text);

// Returns the canonical JSON of a config.
absl::StatusOr<std::string> WriteConfig(const Config& config);
// Parses a config. The entries must be sorted and unique and pass CheckPath() of policy.h. The
// frames of each layer must be contiguous and begin at offset 0. Otherwise INVALID_ARGUMENT, naming
// the field.
absl::StatusOr<Config> ParseConfig(std::string_view text, const FormatLimits& limits = {});

// Returns the directories that the paths of `entries` imply, parents before children.
std::set<std::string, std::less<>> ImpliedDirectories(const std::vector<Entry>& entries);

// Returns the number of frames in all layers.
int64_t FrameCount(const Config& config);
// Returns the total size of the files.
int64_t RawBytes(const Config& config);
// Returns the total uncompressed size of the frames.
int64_t FrameBytes(const Config& config);
// Returns the total size of config and layers: the bytes transferred by a fetch of the whole
// bundle.
int64_t PackedBytes(const Manifest& manifest);

}  // namespace cachewarm::bundle

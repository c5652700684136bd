// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/format.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/entry_list.h"
#include "lib/bundle/policy.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"

namespace cachewarm::bundle {
namespace {

using codec::Json;
using codec::Reader;

constexpr int64_t kBlobBytesMax = 64LL << 30;
constexpr int kSchemaVersion = 2;
constexpr int kConfigVersion = 2;
constexpr size_t kFactsMax = 256;
constexpr size_t kEngineFactorsMax = 514;  // with the ids of salt and part
constexpr size_t kHexBytes = 64;

Json ToJson(const Descriptor& blob) {
  return {{"mediaType", blob.media_type}, {"digest", blob.digest.ToString()}, {"size", blob.bytes}};
}

// Reads the hex digits of a sha256. The frame index omits the prefix "sha256:" to save space.
void ReadHex(Reader& reader, std::string_view name, Digest& out) {
  std::string hex;
  reader.Require(name).Read(name, hex, kHexBytes);
  if (!reader.status().ok()) {
    return;
  }
  auto digest = Digest::Parse("sha256:" + hex);
  if (!digest.ok()) {
    reader.Fail(name, "expected 64 lower-case hex digits");
    return;
  }
  out = *std::move(digest);
}

// Reads a string that must be exactly `expected`.
void Expect(Reader& reader, std::string_view name, std::string_view expected) {
  std::string found;
  reader.Read(name, found);
  if (reader.status().ok() && found != expected) {
    reader.Fail(name, fmt::format("expected \"{}\", found \"{}\"", expected, found));
  }
}

void ReadBlob(Reader& reader, std::string_view media_type, Descriptor& out) {
  Expect(reader, "mediaType", media_type);
  out.media_type = std::string(media_type);
  reader.Require("digest").Read("digest", out.digest);
  reader.Require("size").Read("size", out.bytes, 0, kBlobBytesMax);
}

Json ToJson(const Facts& facts) {
  Json out = {
      {"key", facts.key},
      {"factors", facts.factors},
      {"node", facts.node},
      {"engines", facts.engines},
      {"requires",
       {{"cpuClass", facts.requires_cpu_class}, {"gpuArchitectures", facts.gpu_architectures}}},
      {"compileMilliseconds", facts.compile_milliseconds}};
  if (!facts.engine_factors.empty()) {
    out["engineFactors"] = facts.engine_factors;
  }
  return out;
}

Json ToJson(const LayerIndex& layer) {
  Json frames = Json::array();
  for (const Frame& frame : layer.frames) {
    frames.push_back({{"offset", frame.offset},
                      {"size", frame.bytes},
                      {"rawSize", frame.raw_bytes},
                      {"sha256", frame.digest.hex()}});
  }
  return {{"frames", std::move(frames)}};
}

void ReadFacts(Reader& section, Facts& facts) {
  section.Read("key", facts.key, kHexBytes)
      .Read("factors", facts.factors, kFactsMax)
      .Read("node", facts.node, kFactsMax)
      .Read("engines", facts.engines, kFactsMax)
      .Read("engineFactors", facts.engine_factors, kEngineFactorsMax, kHexBytes)
      .Read("compileMilliseconds", facts.compile_milliseconds, 0)
      .Object("requires", [&facts](Reader& reader) {
        reader.Read("cpuClass", facts.requires_cpu_class)
            .Read("gpuArchitectures", facts.gpu_architectures, kFactsMax);
      });
}

void ReadEntries(Reader& section, const FormatLimits& limits, std::vector<Entry>& entries) {
  section.Require("entries").Object("entries", [&](Reader& reader) {
    EntryList list;
    reader.Require("lineBytes").Read("lineBytes", list.line_bytes, 0, kEntryLinesBytesMax);
    reader.Require("packed").Read("packed", list.packed, size_t{kConfigBytesMax});
    if (!reader.status().ok()) {
      return;
    }
    auto read = ReadEntryList(list, limits.entries_max);
    if (!read.ok()) {
      reader.Fail("packed", Message(read.status()));
      return;
    }
    entries = *std::move(read);
  });
}

void ReadLayer(Reader& reader, const FormatLimits& limits, std::vector<LayerIndex>& layers) {
  LayerIndex& layer = layers.emplace_back();
  int64_t offset = 0;
  reader.Require("frames").List(
      "frames", static_cast<size_t>(limits.frames_max), [&](Reader& each) {
        Frame& frame = layer.frames.emplace_back();
        each.Require("offset").Read("offset", frame.offset, offset, offset);
        each.Require("size").Read("size", frame.bytes, 1, kBlobBytesMax);
        each.Require("rawSize").Read("rawSize", frame.raw_bytes, 1, Limits{}.frame_raw_bytes_max);
        ReadHex(each, "sha256", frame.digest);
        offset += frame.bytes;
      });
  if (reader.status().ok() && layer.frames.empty()) {
    reader.Fail("frames", "is empty");
  }
}

// Checks that there is one diff_id per layer and that the frame of every entry exists.
absl::Status CheckWhole(const Config& config, size_t diff_ids) {
  if (config.layers.size() != diff_ids) {
    return absl::InvalidArgumentError(fmt::format(
        "cachewarm.layers: {} items, but rootfs.diff_ids has {}", config.layers.size(), diff_ids));
  }
  const int64_t frames = FrameCount(config);
  for (const Entry& entry : config.entries) {
    if (entry.frame >= frames) {
      return absl::InvalidArgumentError(fmt::format(
          "cachewarm.entries: \"{}\" is in frame {}, but the layers have only {} frames",
          entry.path, entry.frame, frames));
    }
  }
  return absl::OkStatus();
}

void ReadDiffIds(Reader& rootfs, std::vector<Digest>& out) {
  std::vector<std::string> texts;
  rootfs.Require("diff_ids").Read("diff_ids", texts, kLayersMax);
  for (const std::string& text : texts) {
    auto digest = Digest::Parse(text);
    if (!digest.ok()) {
      rootfs.Fail("diff_ids", Message(digest.status()));
      return;
    }
    out.push_back(*std::move(digest));
  }
}

}  // namespace

absl::StatusOr<std::string> WriteManifest(const Manifest& manifest) {
  Json layers = Json::array();
  for (const Descriptor& layer : manifest.layers) {
    layers.push_back(ToJson(layer));
  }
  Json json = {{"schemaVersion", kSchemaVersion},
               {"mediaType", kManifestType},
               {"artifactType", kArtifactType},
               {"config", ToJson(manifest.config)},
               {"layers", std::move(layers)}};
  if (!manifest.annotations.empty()) {
    json["annotations"] = manifest.annotations;
  }
  return codec::CanonicalJson(json);
}

absl::StatusOr<Manifest> ParseManifest(std::string_view text) {
  CW_ASSIGN_OR_RETURN(const Json json, codec::ParseJson(text, kManifestLimits));
  Manifest manifest;
  Reader reader(json, "");
  int schema = 0;
  reader.Require("schemaVersion").Read("schemaVersion", schema, kSchemaVersion, kSchemaVersion);
  Expect(reader, "mediaType", kManifestType);
  Expect(reader, "artifactType", kArtifactType);
  reader.Require("config").Object(
      "config", [&](Reader& config) { ReadBlob(config, kConfigType, manifest.config); });
  reader.Require("layers").List("layers", kLayersMax, [&](Reader& layer) {
    ReadBlob(layer, kLayerType, manifest.layers.emplace_back());
  });
  reader.Read("annotations", manifest.annotations);
  if (reader.status().ok() && manifest.layers.empty()) {
    reader.Fail("layers", "is empty");
  }
  if (reader.status().ok() && manifest.config.bytes > kConfigBytesMax) {
    reader.Fail("config", fmt::format("larger than {} bytes", kConfigBytesMax));
  }
  CW_RETURN_IF_ERROR(Annotate(reader.status(), "manifest"));
  return manifest;
}

absl::StatusOr<std::string> WriteConfig(const Config& config) {
  Json section = ToJson(config.facts);
  section["version"] = kConfigVersion;
  CW_ASSIGN_OR_RETURN(EntryList entries, WriteEntryList(config.entries));
  section["entries"] = {{"lineBytes", entries.line_bytes}, {"packed", std::move(entries.packed)}};
  Json& layers = section["layers"] = Json::array();
  Json diff_ids = Json::array();
  for (const LayerIndex& layer : config.layers) {
    layers.push_back(ToJson(layer));
    diff_ids.push_back(layer.diff_id.ToString());
  }
  return codec::CanonicalJson({{"architecture", config.facts.architecture},
                               {"os", "linux"},
                               {"rootfs", {{"type", "layers"}, {"diff_ids", std::move(diff_ids)}}},
                               {"cachewarm", std::move(section)}});
}

absl::StatusOr<Config> ParseConfig(std::string_view text, const FormatLimits& limits) {
  CW_ASSIGN_OR_RETURN(const Json json,
                      codec::ParseJson(text, {.bytes_max = size_t{kConfigBytesMax}}));
  Config config;
  std::vector<Digest> diff_ids;
  Reader reader(json, "");
  reader.Read("architecture", config.facts.architecture, 64);
  reader.Require("rootfs").Object("rootfs", [&](Reader& rootfs) { ReadDiffIds(rootfs, diff_ids); });
  reader.Require("cachewarm").Object("cachewarm", [&](Reader& section) {
    int version = 0;
    section.Require("version").Read("version", version, kConfigVersion, kConfigVersion);
    ReadFacts(section, config.facts);
    ReadEntries(section, limits, config.entries);
    section.List("layers", kLayersMax,
                 [&](Reader& layer) { ReadLayer(layer, limits, config.layers); });
  });
  CW_RETURN_IF_ERROR(Annotate(reader.status(), "config"));
  CW_RETURN_IF_ERROR(Annotate(CheckWhole(config, diff_ids.size()), "config"));
  for (size_t i = 0; i < diff_ids.size(); ++i) {
    config.layers[i].diff_id = diff_ids[i];
  }
  return config;
}

std::set<std::string, std::less<>> ImpliedDirectories(const std::vector<Entry>& entries) {
  std::set<std::string, std::less<>> directories;
  std::string_view previous;
  for (const Entry& entry : entries) {
    // Entries of one directory are usually adjacent.
    const std::string_view path = entry.path;
    const std::string_view directory = path.substr(0, path.rfind('/') + 1);
    if (directory == previous) {
      continue;
    }
    previous = directory;
    // Insert from the deepest directory up: if a directory is already in the set, so are its
    // parents.
    for (size_t end = entry.path.rfind('/'); end != std::string::npos && end > 0;
         end = entry.path.rfind('/', end - 1)) {
      if (!directories.insert(entry.path.substr(0, end)).second) {
        break;
      }
    }
  }
  return directories;
}

int64_t FrameCount(const Config& config) {
  int64_t frames = 0;
  for (const LayerIndex& layer : config.layers) {
    frames += static_cast<int64_t>(layer.frames.size());
  }
  return frames;
}

int64_t RawBytes(const Config& config) {
  int64_t sum = 0;
  for (const Entry& entry : config.entries) {
    sum += entry.bytes;
  }
  return sum;
}

int64_t FrameBytes(const Config& config) {
  int64_t sum = 0;
  for (const LayerIndex& layer : config.layers) {
    for (const Frame& frame : layer.frames) {
      sum += frame.raw_bytes;
    }
  }
  return sum;
}

int64_t PackedBytes(const Manifest& manifest) {
  int64_t sum = manifest.config.bytes;
  for (const Descriptor& layer : manifest.layers) {
    sum += layer.bytes;
  }
  return sum;
}

}  // namespace cachewarm::bundle

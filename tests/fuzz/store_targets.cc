// SPDX-License-Identifier: Apache-2.0
// Targets that read a whole chain: the members of a bundle with its index, responses of a registry.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "lib/bundle/entry_list.h"
#include "lib/bundle/frame_codec.h"
#include "lib/bundle/policy.h"
#include "lib/bundle/store/registry/auth_file.h"
#include "lib/bundle/store/registry/session.h"
#include "lib/bundle/tar.h"
#include "lib/bundle/transfer.h"
#include "lib/bundle/utf8.h"
#include "lib/codec/base64.h"
#include "tests/fakes/memory_store.h"
#include "tests/fuzz/targets.h"

namespace cachewarm::fuzz {
namespace {

constexpr char kRepository[] = "team/llama";

// Returns the entries that a packer would list for the tar.
std::map<std::string, bundle::Entry> AddToIndex(const std::vector<std::string_view>& frames) {
  std::map<std::string, bundle::Entry> entries;
  for (size_t frame = 0; frame < frames.size(); ++frame) {
    bundle::TarReader reader(frames[frame]);
    while (true) {
      const auto member = reader.Next();
      if (!member.ok() || !member->has_value()) {
        break;
      }
      const auto content = reader.Content();
      if (!content.ok()) {
        break;
      }
      if ((*member)->type == bundle::MemberType::kFile) {
        entries[(*member)->path] = {.path = (*member)->path,
                                    .kind = "triton",
                                    .bytes = (*member)->bytes,
                                    .digest = DigestOf(*content),
                                    .mtime_ns = (*member)->mtime_ns,
                                    .frame = static_cast<int64_t>(frame)};
      }
      const auto linked = entries.find((*member)->link);
      if ((*member)->type == bundle::MemberType::kHardLink && linked != entries.end()) {
        bundle::Entry entry = linked->second;
        entry.path = (*member)->path;
        entry.mtime_ns = (*member)->mtime_ns;
        entry.frame = static_cast<int64_t>(frame);
        entries[entry.path] = std::move(entry);
      }
    }
  }
  return entries;
}

// Input: the ends of two frames in tar blocks (first two bytes), then the tar of up to three
// frames.
std::vector<std::string_view> Cut(std::string_view bytes) {
  std::vector<std::string_view> frames;
  std::string_view tar = bytes.substr(std::min<size_t>(2, bytes.size()));
  for (size_t i = 0; i < std::min<size_t>(2, bytes.size()); ++i) {
    const size_t blocks = static_cast<unsigned char>(bytes[i]);
    const size_t at = std::min(tar.size(), blocks * size_t{bundle::kTarBlockBytes});
    if (at > 0) {
      frames.push_back(tar.substr(0, at));
    }
    tar.remove_prefix(at);
  }
  if (!tar.empty()) {
    frames.push_back(tar);
  }
  return frames;
}

// Parses the config as a node does, from untrusted text.
absl::StatusOr<bundle::Config> Read(const bundle::Config& config) {
  const auto text = bundle::WriteConfig(config);
  return text.ok() ? bundle::ParseConfig(*text) : text.status();
}

// Removes one number from the start of `bytes`.
int64_t TakeNumber(std::string_view& bytes) {
  int64_t number = 0;
  const size_t taken = std::min(bytes.size(), sizeof(number));
  std::memcpy(&number, bytes.data(), taken);
  bytes.remove_prefix(taken);
  return number;
}

}  // namespace

void UnpackedMembers(std::string_view bytes) {
  const std::vector<std::string_view> frames = Cut(bytes);
  bundle::Config config;
  bundle::FrameWriter writer(1);
  bundle::Buffer output;
  bundle::LayerIndex index;
  std::string layer;
  std::string tar;
  for (const std::string_view raw : frames) {
    Require(writer.Compress(raw, output).ok(), "anything can be compressed");
    index.frames.push_back({.offset = static_cast<int64_t>(layer.size()),
                            .bytes = static_cast<int64_t>(output.view().size()),
                            .raw_bytes = static_cast<int64_t>(raw.size()),
                            .digest = DigestOf(output.view())});
    layer += output.view();
    tar += raw;
  }
  index.diff_id = DigestOf(tar);
  config.layers.push_back(index);
  for (auto& [path, entry] : AddToIndex(frames)) {
    config.entries.push_back(std::move(entry));
  }
  const auto read = Read(config);
  if (!read.ok()) {
    return;
  }
  bundle::MemoryStore store;
  const auto blob = bundle::WriteSmallBlob(store, kRepository, layer, {});
  Require(blob.ok(), "any bytes can be stored");
  const bundle::Manifest manifest{
      .config = {.media_type = std::string(bundle::kConfigType), .digest = DigestOf("c")},
      .layers = {{.media_type = std::string(bundle::kLayerType),
                  .digest = blob->digest,
                  .bytes = blob->bytes}}};
  if (bundle::Verify({store, kRepository}, {.manifest = manifest, .config = *read}, {}, {}).ok()) {
    for (const bundle::Entry& entry : read->entries) {
      Require(bundle::CheckPath(entry.path, {}).ok(), "an accepted path passes the policy");
      Require(entry.bytes <= static_cast<int64_t>(bytes.size()),
              "no file is larger than the input");
    }
  }
}

void EntryLines(std::string_view bytes) {
  constexpr int64_t kEntriesMax = 1000;
  static_cast<void>(bundle::ReadEntryList(
      {.line_bytes = static_cast<int64_t>(bytes.size()), .packed = std::string(bytes)},
      kEntriesMax));
  bundle::Buffer packed;
  Require(bundle::FrameWriter(1).Compress(bytes, packed).ok(), "anything can be compressed");
  const auto entries = bundle::ReadEntryList({.line_bytes = static_cast<int64_t>(bytes.size()),
                                              .packed = codec::EncodeBase64(packed.view())},
                                             kEntriesMax);
  if (!entries.ok()) {
    Require(bundle::IsPlainUtf8(std::string(entries.status().message())), "errors are printable");
    return;
  }
  int64_t sum = 0;
  for (const bundle::Entry& entry : *entries) {
    Require(bundle::CheckPath(entry.path, {}).ok(), "an accepted path passes the policy");
    Require(entry.bytes >= 0 && entry.frame >= 0, "accepted numbers are not negative");
    Require(!__builtin_add_overflow(sum, entry.bytes, &sum), "the sum of sizes does not overflow");
  }
  const auto text = bundle::WriteEntryList(*entries);
  Require(text.ok(), "an entry list that was read can be written");
  const auto again = bundle::ReadEntryList(*text, kEntriesMax);
  Require(again.ok() && *again == *entries, "a written entry list reads the same");
}

void FrameIndex(std::string_view bytes) {
  bundle::Config config;
  bundle::Manifest manifest;
  const auto layers = static_cast<size_t>(TakeNumber(bytes) & 3);
  for (size_t i = 0; i < layers; ++i) {
    manifest.layers.push_back({.media_type = std::string(bundle::kLayerType),
                               .digest = DigestOf("layer"),
                               .bytes = TakeNumber(bytes)});
    bundle::LayerIndex& index = config.layers.emplace_back();
    index.diff_id = DigestOf("tar");
    for (auto frames = static_cast<size_t>(TakeNumber(bytes) & 7); frames > 0; --frames) {
      index.frames.push_back({.offset = TakeNumber(bytes),
                              .bytes = TakeNumber(bytes),
                              .raw_bytes = TakeNumber(bytes),
                              .digest = DigestOf("frame")});
    }
  }
  while (!bytes.empty()) {
    config.entries.push_back({.path = "e" + std::to_string(1'000'000 + config.entries.size()),
                              .kind = "triton",
                              .bytes = TakeNumber(bytes),
                              .digest = DigestOf("file"),
                              .frame = TakeNumber(bytes)});
  }
  const bundle::Limits limits;
  const auto read = Read(config);
  if (!read.ok() || !bundle::CheckBundle(manifest, *read, limits).ok()) {
    return;
  }
  for (size_t i = 0; i < layers; ++i) {
    int64_t end = 0;
    for (const bundle::Frame& frame : read->layers[i].frames) {
      Require(frame.offset == end && frame.bytes > 0, "frames are contiguous");
      Require(frame.raw_bytes >= 0 && frame.raw_bytes <= limits.frame_raw_bytes_max,
              "a frame fits into its worker's memory");
      end += frame.bytes;
    }
    Require(end == manifest.layers[i].bytes, "frames cover their layer");
  }
}

// Input: a status, a line with Retry-After, and the body.
void RegistryError(std::string_view bytes) {
  http::Response response{.status = 400 + static_cast<int>(TakeNumber(bytes) & 127)};
  const size_t line = std::min(bytes.find('\n'), bytes.size());
  response.headers.Set("Retry-After", std::string(bytes.substr(0, line)));
  response.headers.Set("Date", "Sat, 21 Nov 2026 08:00:00 GMT");
  response.body = bytes.substr(std::min(line + 1, bytes.size()));
  const absl::Status status = bundle::RegistryStatus(response, "GET x");
  Require(!status.ok(), "an error status is not OK");
  Require(status.message().size() < 5000, "the message of a registry is bounded");
  Require(bundle::IsPlainUtf8(std::string(status.message())),
          "the message of a registry is printable");
}

void AuthFile(std::string_view bytes) {
  for (const std::string_view host : {"registry.example.com", "127.0.0.1:5000", "docker.io"}) {
    const auto found = bundle::FindCredentials(bytes, host);
    Require(!found.ok() || !found->has_value() ||
                (*found)->base64.find_first_of("\r\n ") == std::string::npos,
            "credentials fit into a header line");
  }
}

}  // namespace cachewarm::fuzz

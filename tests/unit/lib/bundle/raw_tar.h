// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "lib/bundle/format.h"
#include "lib/bundle/frame_codec.h"
#include "lib/bundle/tar.h"

// Builds malicious archives byte by byte, in bundles with valid digests, as an attacker with
// publish rights could.
namespace cachewarm::bundle {

struct RawMember {
  std::string path;
  char type = '0';
  std::string content;
  unsigned mode = 0444;
  std::string link;
  std::vector<std::pair<std::string, std::string>> pax;  // a pax header before it
};

// Returns a ustar header (POSIX.1-1988), 512 bytes.
inline std::string RawHeader(const RawMember& member, size_t size) {
  std::string header(512, '\0');
  const auto put = [&header](size_t at, std::string_view text) {
    header.replace(at, text.size(), text);
  };
  put(0, std::string_view(member.path).substr(0, 100));
  put(100, fmt::format("{:07o}", member.mode));
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", size));
  put(136, "00000000000");
  put(148, "        ");
  header[156] = member.type;
  put(157, std::string_view(member.link).substr(0, 100));
  put(257, std::string_view("ustar\0"
                            "00",
                            8));
  unsigned sum = 0;
  for (const char c : header) {
    sum += static_cast<unsigned char>(c);
  }
  put(148, std::string_view(fmt::format("{:06o}", sum)));
  header[154] = '\0';
  return header;
}

inline std::string Padded(std::string content) {
  content.resize(static_cast<size_t>(PaddedToBlock(static_cast<int64_t>(content.size()))));
  return content;
}

inline std::string RawPax(const RawMember& member) {
  std::string records;
  for (const auto& [name, value] : member.pax) {
    // The length counts its own digits.
    size_t length = name.size() + value.size() + 3;
    length += fmt::format("{}", length + 2).size();
    records += fmt::format("{} {}={}\n", length, name, value);
  }
  return RawHeader({.path = "pax", .type = 'x'}, records.size()) + Padded(records);
}

inline std::string RawTar(const std::vector<RawMember>& members) {
  std::string tar;
  for (const RawMember& member : members) {
    tar += member.pax.empty() ? "" : RawPax(member);
    tar += RawHeader(member, member.content.size()) + Padded(member.content);
  }
  return tar;
}

struct RawBundle {
  Config config;
  Manifest manifest;
  std::string layer;
};

// Returns a bundle of exactly these frames of tar bytes and these entries, with valid digests.
inline RawBundle BundleOf(const std::vector<std::string>& raw_frames, std::vector<Entry> entries) {
  RawBundle bundle;
  FrameWriter writer(3);
  LayerIndex index;
  Buffer frame;
  std::string raw_layer;
  for (const std::string& raw : raw_frames) {
    writer.Compress(raw, frame).IgnoreError();
    const std::string packed(frame.view());
    index.frames.push_back({.offset = static_cast<int64_t>(bundle.layer.size()),
                            .bytes = static_cast<int64_t>(packed.size()),
                            .raw_bytes = static_cast<int64_t>(raw.size()),
                            .digest = DigestOf(packed)});
    bundle.layer += packed;
    raw_layer += raw;
  }
  index.diff_id = DigestOf(raw_layer);
  bundle.config = {.entries = std::move(entries), .layers = {std::move(index)}};
  bundle.manifest = {
      .config = {.media_type = std::string(kConfigType), .digest = DigestOf("c"), .bytes = 1},
      .layers = {{.media_type = std::string(kLayerType),
                  .digest = DigestOf(bundle.layer),
                  .bytes = static_cast<int64_t>(bundle.layer.size())}}};
  return bundle;
}

inline Entry EntryOf(const std::string& path, const std::string& content, int64_t frame = 0) {
  return {.path = path,
          .kind = "torchinductor",
          .bytes = static_cast<int64_t>(content.size()),
          .digest = DigestOf(content),
          .frame = frame};
}

}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/referrers/descriptor.h"

#include <string>
#include <utility>

#include "lib/base/status.h"
#include "lib/codec/json_value.h"

namespace cachewarm::bundle {
namespace {

constexpr int64_t kBlobBytesMax = 64LL << 30;
constexpr size_t kTypeBytesMax = 255;

}  // namespace

codec::Json DescriptorJson(const Descriptor& blob) {
  return {{"mediaType", blob.media_type}, {"digest", blob.digest.ToString()}, {"size", blob.bytes}};
}

void ReadDescriptor(codec::Reader& reader, Descriptor& out) {
  std::string text;
  reader.Require("mediaType").Read("mediaType", out.media_type, kTypeBytesMax);
  reader.Require("digest").Read("digest", text, 80);
  reader.Require("size").Read("size", out.bytes, 0, kBlobBytesMax);
  if (!reader.status().ok()) {
    return;
  }
  auto digest = Digest::Parse(text);
  if (!digest.ok()) {
    reader.Fail("digest", Message(digest.status()));
    return;
  }
  out.digest = *std::move(digest);
}

}  // namespace cachewarm::bundle

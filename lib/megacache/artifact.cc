// SPDX-License-Identifier: Apache-2.0
#include "lib/megacache/artifact.h"

#include <algorithm>
#include <map>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/codec/base64.h"
#include "lib/megacache/platform/boost/crc32.h"

namespace cachewarm::megacache {
namespace {

constexpr size_t kChecksumBytes = 4;
constexpr size_t kIntegerBytes = 8;
constexpr unsigned kBitsOfByte = 8;
// An entry has at least the lengths of its key and its content.
constexpr size_t kEntryBytesMin = 2 * kIntegerBytes;

uint64_t BigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) {
    value = value << kBitsOfByte | static_cast<unsigned char>(c);
  }
  return value;
}

void AppendBigEndian(uint64_t value, size_t bytes, std::string& out) {
  for (size_t i = bytes; i-- > 0;) {
    out.push_back(static_cast<char>(value >> (kBitsOfByte * i)));
  }
}

class ArtifactReader {
 public:
  ArtifactReader(std::string_view bytes, size_t at) : bytes_(bytes), at_(at) {}

  bool AtEnd() const { return at_ == bytes_.size(); }
  size_t remaining() const { return bytes_.size() - at_; }

  absl::StatusOr<uint64_t> Integer(std::string_view what) {
    if (remaining() < kIntegerBytes) {
      return EndsIn(what);
    }
    const uint64_t value = BigEndian(bytes_.substr(at_, kIntegerBytes));
    at_ += kIntegerBytes;
    return value;
  }
  absl::StatusOr<std::string_view> Bytes(std::string_view what) {
    CW_ASSIGN_OR_RETURN(const uint64_t size, Integer(what));
    if (size > remaining()) {
      return EndsIn(what);
    }
    const std::string_view found = bytes_.substr(at_, size);
    at_ += size;
    return found;
  }
  absl::StatusOr<std::string> String(std::string_view what, size_t bytes_max) {
    CW_ASSIGN_OR_RETURN(const std::string_view text, Bytes(what));
    // Rejects long texts before decoding them: base64 has four characters for three bytes.
    if (text.size() / 4 * 3 > bytes_max + 2) {
      return absl::InvalidArgumentError(fmt::format(
          "{} is longer than {} bytes; torch writes no such artifact", what, bytes_max));
    }
    auto decoded = codec::DecodeBase64(text);
    if (!decoded.ok() || decoded->size() > bytes_max || !IsUtf8(*decoded)) {
      return absl::InvalidArgumentError(fmt::format(
          "{} is not base64 of at most {} bytes of UTF-8; torch writes no such artifact", what,
          bytes_max));
    }
    return decoded;
  }

 private:
  absl::Status EndsIn(std::string_view what) const {
    return absl::DataLossError(
        fmt::format("the artifact ends within {}; save it again or copy it again", what));
  }

  const std::string_view bytes_;
  size_t at_;
};

// Returns the error for an artifact whose checksum does not match.
absl::Status ExplainChecksum(std::string_view bytes) {
  if (bytes[0] == '\x80' && bytes[1] > 0 && bytes[1] <= 5) {
    return absl::InvalidArgumentError(
        fmt::format("a pickle of protocol {}, not an artifact of save_cache_artifacts() of torch "
                    "2.8 or later; pickles are not read, because reading one runs its code",
                    static_cast<int>(bytes[1])));
  }
  if (BigEndian(bytes.substr(0, kIntegerBytes)) == kVersion) {
    return absl::InvalidArgumentError(
        "the format without a checksum, which torch wrote before 2.8; save the artifact with torch "
        "2.8 or later");
  }
  return absl::DataLossError(
      "the checksum does not match: the artifact is damaged, truncated or not one of torch; save "
      "it again or copy it again");
}

absl::Status ParseGroup(ArtifactReader& reader, const ArtifactLimits& limits,
                        std::vector<Entry>& entries) {
  CW_ASSIGN_OR_RETURN(const std::string type,
                      reader.String("the type of a group", limits.type_bytes_max));
  CW_ASSIGN_OR_RETURN(const uint64_t count, reader.Integer("the size of a group"));
  if (count > reader.remaining() / kEntryBytesMin) {
    return absl::DataLossError(fmt::format(
        "the artifact is too short for {} entries of type {}; save it again or copy it again",
        count, type));
  }
  if (count > limits.entries_max - entries.size()) {
    return absl::InvalidArgumentError(
        fmt::format("the artifact has more than {} entries", limits.entries_max));
  }
  for (uint64_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("entry {} of type {}", i, type);
    CW_ASSIGN_OR_RETURN(std::string key,
                        reader.String(fmt::format("the key of {}", name), limits.key_bytes_max));
    CW_ASSIGN_OR_RETURN(const std::string_view content,
                        reader.Bytes(fmt::format("the content of {}", name)));
    entries.push_back({.type = type, .key = std::move(key), .content = content});
  }
  return absl::OkStatus();
}

void AppendBytes(std::string_view bytes, std::string& out) {
  AppendBigEndian(bytes.size(), kIntegerBytes, out);
  out += bytes;
}

}  // namespace

absl::StatusOr<std::vector<Entry>> Parse(std::string_view bytes, const ArtifactLimits& limits) {
  if (bytes.size() < kChecksumBytes + kIntegerBytes) {
    return absl::DataLossError(fmt::format(
        "{} bytes are too few for an artifact; save it again or copy it again", bytes.size()));
  }
  if (BigEndian(bytes.substr(0, kChecksumBytes)) != Crc32(bytes.substr(kChecksumBytes))) {
    return ExplainChecksum(bytes);
  }
  ArtifactReader reader(bytes, kChecksumBytes);
  CW_ASSIGN_OR_RETURN(const uint64_t version, reader.Integer("the version"));
  if (version != kVersion) {
    return absl::InvalidArgumentError(
        fmt::format("format version {} is unknown; this cachewarm reads version {} (torch 2.8 to "
                    "2.15): use a newer cachewarm",
                    version, kVersion));
  }
  std::vector<Entry> entries;
  while (!reader.AtEnd()) {
    CW_RETURN_IF_ERROR(ParseGroup(reader, limits, entries));
  }
  return entries;
}

std::string Write(const std::vector<Entry>& entries) {
  std::vector<std::string_view> types;
  std::map<std::string_view, std::vector<const Entry*>> groups;
  size_t content_bytes = 0;
  for (const Entry& entry : entries) {
    auto& group = groups[entry.type];
    if (group.empty()) {
      types.push_back(entry.type);
    }
    group.push_back(&entry);
    content_bytes += entry.content.size();
  }
  std::string out(kChecksumBytes, '\0');
  out.reserve(content_bytes + content_bytes / 8);
  AppendBigEndian(kVersion, kIntegerBytes, out);
  for (const std::string_view type : types) {
    AppendBytes(codec::EncodeBase64(type), out);
    AppendBigEndian(groups[type].size(), kIntegerBytes, out);
    for (const Entry* entry : groups[type]) {
      AppendBytes(codec::EncodeBase64(entry->key), out);
      AppendBytes(entry->content, out);
    }
  }
  std::string checksum;
  AppendBigEndian(Crc32(std::string_view(out).substr(kChecksumBytes)), kChecksumBytes, checksum);
  std::copy(checksum.begin(), checksum.end(), out.begin());
  return out;
}

}  // namespace cachewarm::megacache

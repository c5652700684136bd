// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/entry_list.h"

#include <charconv>
#include <cstdint>
#include <iterator>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/buffer.h"
#include "lib/bundle/frame_codec.h"
#include "lib/bundle/policy.h"
#include "lib/bundle/utf8.h"
#include "lib/codec/base64.h"
#include "lib/codec/tab_line.h"

namespace cachewarm::bundle {
namespace {

// The zstd level. The list consists mostly of digests, which do not compress: higher levels are
// slower and even give a larger result.
constexpr int kLevel = 1;
constexpr size_t kKindBytesMax = 64;
// Limits the size of one file, so that the sum of all sizes fits into 64 bits.
constexpr int64_t kFileBytesMax = 1LL << 40;

absl::StatusOr<Entry> ReadEntry(std::string_view text, const Entry* before) {
  codec::TabLine line(text);
  Entry entry;
  entry.path = line.Text("path", static_cast<size_t>(Limits{}.path_bytes_max));
  entry.kind = line.Text("kind", kKindBytesMax);
  if (!IsPlainUtf8(entry.kind)) {
    line.Fail("kind", "is not UTF-8 or holds control characters");
  }
  entry.bytes = line.Number("size", 0, kFileBytesMax);
  entry.digest = line.Sha256("sha256");
  entry.frame = line.Number("frame", 0);
  if (line.has_more()) {
    entry.mtime_ns = line.Number("mtimeNanoseconds", 1);
  }
  if (line.has_more()) {
    line.Fail("mtimeNanoseconds", "must be the last field");
  }
  CW_RETURN_IF_ERROR(line.status());
  CW_RETURN_IF_ERROR(Annotate(CheckPath(entry.path, {}), "path"));
  if (before != nullptr && !(before->path < entry.path)) {
    return absl::InvalidArgumentError("path: must sort after the path of the previous line");
  }
  return entry;
}

absl::StatusOr<std::vector<Entry>> ReadLines(std::string_view lines, int64_t entries_max) {
  std::vector<Entry> entries;
  while (!lines.empty()) {
    const size_t number = entries.size() + 1;
    const size_t end = lines.find('\n');
    if (end == std::string_view::npos) {
      return absl::InvalidArgumentError(fmt::format("line {}: is truncated", number));
    }
    if (static_cast<int64_t>(number) > entries_max) {
      return absl::InvalidArgumentError(fmt::format("more than {} lines", entries_max));
    }
    auto entry = ReadEntry(lines.substr(0, end), entries.empty() ? nullptr : &entries.back());
    CW_RETURN_IF_ERROR(Annotate(entry.status(), fmt::format("line {}", number)));
    entries.push_back(*std::move(entry));
    lines.remove_prefix(end + 1);
  }
  return entries;
}

}  // namespace

absl::StatusOr<EntryList> WriteEntryList(const std::vector<Entry>& entries) {
  std::string lines;
  for (const Entry& entry : entries) {
    if (!IsPlainUtf8(entry.kind)) {
      return absl::InvalidArgumentError(
          fmt::format("\"{}\": its kind is not UTF-8 or holds control characters", entry.path));
    }
    fmt::format_to(std::back_inserter(lines), "{}\t{}\t{}\t{}\t{}", entry.path, entry.kind,
                   entry.bytes, entry.digest.hex(), entry.frame);
    if (entry.mtime_ns != 0) {
      fmt::format_to(std::back_inserter(lines), "\t{}", entry.mtime_ns);
    }
    lines += '\n';
  }
  const auto line_bytes = static_cast<int64_t>(lines.size());
  if (line_bytes > kEntryLinesBytesMax) {
    return absl::InvalidArgumentError(fmt::format(
        "the entry list takes {} bytes, more than {}: pack fewer files or shorter paths",
        line_bytes, kEntryLinesBytesMax));
  }
  Buffer packed;
  CW_RETURN_IF_ERROR(FrameWriter(kLevel).Compress(lines, packed));
  return EntryList{.line_bytes = line_bytes, .packed = codec::EncodeBase64(packed.view())};
}

absl::StatusOr<std::vector<Entry>> ReadEntryList(const EntryList& list, int64_t entries_max) {
  if (list.line_bytes < 0 || list.line_bytes > kEntryLinesBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("lineBytes is not between 0 and {}", kEntryLinesBytesMax));
  }
  CW_ASSIGN_OR_RETURN(const std::string packed, codec::DecodeBase64(list.packed));
  Buffer lines;
  const absl::Status whole =
      FrameReader().Decompress(packed, static_cast<size_t>(list.line_bytes), lines);
  if (!whole.ok()) {
    return absl::InvalidArgumentError(Message(whole));
  }
  return ReadLines(lines.view(), entries_max);
}

}  // namespace cachewarm::bundle

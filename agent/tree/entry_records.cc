// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>

#include "agent/tree/journal.h"
#include "agent/tree/record_file.h"
#include "agent/tree/root_layout.h"
#include "lib/base/status.h"
#include "lib/codec/tab_line.h"

// The file of a tree that lists its files. Its lines are tab-separated, because encoding them as
// JSON would take longer than writing the files of the tree.
namespace cachewarm::agent {
namespace {

constexpr int64_t kEntriesBytesMax = int64_t{128} << 20;
constexpr size_t kEntriesMax = 1'000'000;

std::string EntryLines(const std::vector<EntryRecord>& entries) {
  std::string lines;
  for (const EntryRecord& entry : entries) {
    fmt::format_to(std::back_inserter(lines), "{}\t{}\t{}\t{}\t{}\t{}\t{}\n", entry.path,
                   entry.kind, entry.digest.hex(), entry.bytes, static_cast<int64_t>(entry.inode),
                   entry.mtime_ns, entry.ctime_ns);
  }
  return lines;
}

absl::StatusOr<EntryRecord> ReadEntryLine(std::string_view text) {
  constexpr size_t kPathBytesMax = 4096;
  constexpr size_t kKindBytesMax = 64;
  codec::TabLine line(text);
  EntryRecord entry;
  entry.path = line.Text("path", kPathBytesMax);
  entry.kind = line.Text("kind", kKindBytesMax);
  entry.digest = line.Sha256("sha256");
  entry.bytes = line.Number("bytes", 0);
  // Negative if the highest bit is set, as on file systems that use 64-bit hashes (mergerfs).
  entry.inode = static_cast<uint64_t>(line.Number("inode", INT64_MIN));
  entry.mtime_ns = line.Number("mtime", INT64_MIN);
  entry.ctime_ns = line.Number("ctime", INT64_MIN);
  if (line.has_more()) {
    line.Fail("ctime", "unexpected text after this last field");
  }
  CW_RETURN_IF_ERROR(line.status());
  return entry;
}

}  // namespace

absl::Status WriteEntryRecords(const fs::Dir& root, const std::string& id,
                               const std::vector<EntryRecord>& entries, fs::Durable durable) {
  return fs::WriteFileAtomic(root, EntriesRecordPath(id), EntryLines(entries), kRecordMode,
                             durable);
}

absl::StatusOr<std::vector<EntryRecord>> ReadEntryRecords(const fs::Dir& root,
                                                          const std::string& id) {
  const std::string path = EntriesRecordPath(id);
  CW_ASSIGN_OR_RETURN(const std::string text, fs::ReadFile(root, path, kEntriesBytesMax));
  std::vector<EntryRecord> entries;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos || entries.size() == kEntriesMax) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: line {} is truncated, or the file has too many lines", path, entries.size() + 1));
    }
    absl::StatusOr<EntryRecord> entry = ReadEntryLine(rest.substr(0, end));
    CW_RETURN_IF_ERROR(
        Annotate(entry.status(), fmt::format("{}: line {}", path, entries.size() + 1)));
    entries.push_back(*std::move(entry));
    rest.remove_prefix(end + 1);
  }
  return entries;
}

}  // namespace cachewarm::agent

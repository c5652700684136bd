// SPDX-License-Identifier: Apache-2.0
#include "cli/megacache/stored_entries.h"

#include <optional>
#include <utility>

#include "cli/run/directory.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/file.h"
#include "lib/fs/tree.h"
#include "lib/megacache/layout.h"

namespace cachewarm::cli {
namespace {

constexpr int64_t kEntriesBytesMax = 4LL << 30;

// Adds the file `path` to `stored`.
absl::Status ReadEntry(const fs::Dir& inductor, const std::string& path,
                       const megacache::EntryName& name, StoredEntries& stored) {
  CW_ASSIGN_OR_RETURN(std::string content, fs::ReadFile(inductor, path, kEntriesBytesMax));
  const std::string_view last = std::string_view(path).substr(path.rfind('/') + 1);
  if (content.empty() || (name.named_by_content && megacache::ContentName(content) != last)) {
    stored.damaged.push_back(
        fmt::format("{}: {}", path,
                    content.empty() ? "it is empty" : "its name is not the hash of its content"));
    return absl::OkStatus();
  }
  const std::string& kept = stored.contents.emplace_back(std::move(content));
  stored.entries.push_back({.type = name.type, .key = name.key, .content = kept});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StoredEntries> ReadStoredEntries(const fs::Dir& inductor,
                                                const std::stop_token& stop) {
  StoredEntries stored;
  int64_t bytes = 0;
  absl::Status read;
  CW_RETURN_IF_ERROR(fs::Walk(inductor, "", {}, [&](const fs::WalkEntry& entry) {
    if (entry.path == kOwnFiles) {
      return fs::WalkNext::kSkipDirectory;
    }
    const auto name = megacache::NameOf(entry.path);
    if (!name.has_value() || entry.stat.type != fs::FileType::kFile) {
      return fs::WalkNext::kContinue;
    }
    bytes += entry.stat.bytes;
    if (stop.stop_requested()) {
      read = absl::CancelledError("the export was stopped");
    } else if (bytes > kEntriesBytesMax) {
      read = absl::ResourceExhaustedError(fmt::format(
          "{}: the entries have more than {} bytes, the most that export can read into memory",
          inductor.name(), kEntriesBytesMax));
    } else {
      read = ReadEntry(inductor, entry.path, *name, stored);
    }
    return read.ok() ? fs::WalkNext::kContinue : fs::WalkNext::kStop;
  }));
  CW_RETURN_IF_ERROR(read);
  return stored;
}

}  // namespace cachewarm::cli

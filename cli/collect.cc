// SPDX-License-Identifier: Apache-2.0
#include "cli/collect.h"

#include <memory>
#include <span>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/fs/file.h"
#include "lib/fs/tree.h"

namespace cachewarm::cli {
namespace {

constexpr size_t kHeadBytes = 64;
constexpr int64_t kEntryBytesMax = 256LL << 20;

bool IsUnchanged(const fs::FileStat& a, const fs::FileStat& b) {
  return a.inode == b.inode && a.bytes == b.bytes && a.mtime_ns == b.mtime_ns &&
         a.ctime_ns == b.ctime_ns;
}

// A file that must still be what it was when it was chosen, before the first byte and after the
// last.
class UnchangedFile : public bundle::Source {
 public:
  UnchangedFile(fs::Fd file, std::string path, const fs::FileStat& chosen)
      : file_(std::move(file)), path_(std::move(path)), chosen_(chosen) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    CW_ASSIGN_OR_RETURN(const size_t got, fs::ReadAt(file_, offset_, buffer.data(), buffer.size()));
    offset_ += static_cast<int64_t>(got);
    if (got == 0) {
      CW_RETURN_IF_ERROR(Check());
    }
    return got;
  }

  absl::Status Check() const {
    CW_ASSIGN_OR_RETURN(const fs::FileStat now, fs::StatFile(file_));
    return IsUnchanged(now, chosen_)
               ? absl::OkStatus()
               : absl::AbortedError(fmt::format("{}: changed while it was read", path_));
  }

 private:
  const fs::Fd file_;
  const std::string path_;
  const fs::FileStat chosen_;
  int64_t offset_ = 0;
};

absl::StatusOr<std::unique_ptr<bundle::Source>> OpenUnchanged(const fs::Dir& tree,
                                                              const std::string& path,
                                                              const fs::FileStat& chosen) {
  CW_ASSIGN_OR_RETURN(fs::Fd file, tree.OpenFile(path));
  auto source = std::make_unique<UnchangedFile>(std::move(file), path, chosen);
  CW_RETURN_IF_ERROR(source->Check());
  return source;
}

// What the bytes of a file say about the bundle.
absl::Status Read(const fs::Dir& tree, const fs::WalkEntry& entry,
                  const caches::Placement& placement, Collection& collection) {
  CW_ASSIGN_OR_RETURN(const fs::Fd file, tree.OpenFile(entry.path));
  const caches::ReadAt read = [&file](uint64_t offset, size_t size) -> absl::StatusOr<std::string> {
    std::string bytes(size, '\0');
    CW_ASSIGN_OR_RETURN(const size_t got,
                        fs::ReadAt(file, static_cast<int64_t>(offset), bytes.data(), size));
    bytes.resize(got);
    return bytes;
  };
  CW_RETURN_IF_ERROR(
      CheckWhole(placement, entry.path, static_cast<uint64_t>(entry.stat.bytes), read));
  CW_ASSIGN_OR_RETURN(const std::string head, read(0, kHeadBytes));
  if (auto architecture = caches::CubinArchitecture(head); architecture.has_value()) {
    collection.gpu_architectures.insert(*std::move(architecture));
  }
  if (caches::StoresCompileTime(placement) && entry.stat.bytes <= kEntryBytesMax) {
    CW_ASSIGN_OR_RETURN(const std::string bytes, fs::ReadAll(file, kEntryBytesMax));
    collection.compile_time += caches::FindCompileTime(bytes);
  }
  collection.native = collection.native || placement.native;
  return absl::OkStatus();
}

absl::Status Take(const fs::Dir& tree, const fs::WalkEntry& entry,
                  const caches::Placement& placement, Collection& collection) {
  const absl::Status read = Read(tree, entry, placement, collection);
  if (absl::IsDataLoss(read)) {
    collection.damaged.push_back(fmt::format("{}: {}", entry.path, Message(read)));
    return absl::OkStatus();
  }
  CW_RETURN_IF_ERROR(read);
  collection.files.push_back({.path = entry.path,
                              .kind = placement.cache,
                              .bytes = entry.stat.bytes,
                              .mtime_ns = placement.keep_mtime ? entry.stat.mtime_ns : 0,
                              .open = [&tree, path = entry.path, chosen = entry.stat] {
                                return OpenUnchanged(tree, path, chosen);
                              }});
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Collection> CollectTree(const fs::Dir& tree, const caches::CacheTable& table) {
  Collection collection;
  absl::Status status;
  CW_RETURN_IF_ERROR(fs::Walk(tree, "", {}, [&](const fs::WalkEntry& entry) {
    if (entry.stat.type == fs::FileType::kDirectory) {
      return fs::WalkNext::kGoOn;
    }
    if (entry.stat.type != fs::FileType::kFile) {
      ++collection.left_behind["not a regular file"];
      return fs::WalkNext::kGoOn;
    }
    const caches::Placement placement = table.Classify(entry.path);
    if (!placement.carried()) {
      ++collection.left_behind[std::string(caches::SkipName(placement.skip))];
      return fs::WalkNext::kGoOn;
    }
    status = Take(tree, entry, placement, collection);
    return status.ok() ? fs::WalkNext::kGoOn : fs::WalkNext::kStop;
  }));
  CW_RETURN_IF_ERROR(status);
  return collection;
}

}  // namespace cachewarm::cli

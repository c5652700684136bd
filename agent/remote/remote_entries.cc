// SPDX-License-Identifier: Apache-2.0
#include "agent/remote/remote_entries.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "agent/tree/root_layout.h"
#include "fmt/format.h"
#include "lib/base/digest.h"
#include "lib/base/status.h"
#include "lib/fs/file.h"
#include "lib/fs/tree.h"

namespace cachewarm::agent {
namespace {

constexpr std::string_view kValueEnd = ".value";
// The same mode as that of files from bundles.
constexpr mode_t kValueMode = 0444;
constexpr mode_t kStagingMode = 0700;
// Name of the last member in a value of torch's FX graph and AOTAutograd caches, which
// torch/_inductor/remote_cache.py writes as json.dumps({"data": ..., "time_taken_ms": 1234}).
constexpr std::string_view kCompileTime = "\"time_taken_ms\": ";
constexpr size_t kTailBytes = 64;
constexpr int64_t kCompileMsMax = 24LL * 3600 * 1000;  // no compile takes a day

int64_t CompileMs(std::string_view tail) {
  const size_t at = tail.rfind(kCompileTime);
  if (at == std::string_view::npos) {
    return 0;
  }
  std::string_view digits = tail.substr(at + kCompileTime.size());
  if (!digits.ends_with('}')) {
    return 0;
  }
  digits.remove_suffix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
  return is_whole && value > 0 && value <= kCompileMsMax ? value : 0;
}

}  // namespace

absl::StatusOr<RemoteEntries> RemoteEntries::Open(const fs::Dir& root, const std::string& path,
                                                  const RemoteEntryLimits& limits) {
  RemoteEntries entries(root, fmt::format("{}/{}", path, kRemoteFolder), limits);
  for (const auto& [folder, mode] : {std::pair{std::string(kRemoteStaging), kStagingMode},
                                     std::pair{entries.folder_, kTreeMode}}) {
    if (absl::Status made = root.MakeDir(folder, mode);
        !made.ok() && !absl::IsAlreadyExists(made)) {
      return made;
    }
  }
  CW_RETURN_IF_ERROR(
      fs::Walk(root, entries.folder_, {.depth_max = 1}, [&](const fs::WalkEntry& entry) {
        if (entry.stat.type == fs::FileType::kDirectory) {
          return fs::WalkNext::kSkipDirectory;
        }
        if (entry.path.ends_with(kValueEnd)) {
          ++entries.entries_;
          entries.bytes_ += entry.stat.bytes;
        }
        return fs::WalkNext::kContinue;
      }));
  return entries;
}

std::string RemoteEntries::PathOf(std::string_view key) const {
  return fmt::format("{}/{}{}", folder_, DigestOf(key).hex(), kValueEnd);
}

absl::StatusOr<RemoteEntry> RemoteEntries::Find(std::string_view key) const {
  RemoteEntry entry;
  CW_ASSIGN_OR_RETURN(entry.file, root_->OpenFile(PathOf(key)));
  CW_ASSIGN_OR_RETURN(const fs::FileStat stat, fs::StatFile(entry.file));
  if (stat.bytes > limits_.value_bytes_max) {
    return absl::NotFoundError("the stored value is larger than the limit");
  }
  entry.bytes = stat.bytes;
  std::array<char, kTailBytes> tail{};
  const int64_t from = std::max<int64_t>(0, stat.bytes - static_cast<int64_t>(kTailBytes));
  if (const auto read = fs::ReadAt(entry.file, from, tail.data(), tail.size()); read.ok()) {
    entry.compile_ms = CompileMs(std::string_view(tail.data(), *read));
  }
  return entry;
}

bool RemoteEntries::Contains(std::string_view key) const {
  const absl::StatusOr<fs::FileStat> stat = root_->Stat(PathOf(key));
  return stat.ok() && stat->type == fs::FileType::kFile && stat->bytes <= limits_.value_bytes_max;
}

absl::Status RemoteEntries::CheckRoom(int64_t bytes) const {
  if (bytes > limits_.value_bytes_max) {
    return absl::ResourceExhaustedError(fmt::format(
        "a value of {} bytes is larger than the limit of {}", bytes, limits_.value_bytes_max));
  }
  if (entries_ >= limits_.entries_max || bytes > limits_.bytes_max - bytes_) {
    return absl::ResourceExhaustedError(fmt::format(
        "the tree holds {} entries of {} bytes; at most {} entries and {} bytes are stored",
        entries_, bytes_, limits_.entries_max, limits_.bytes_max));
  }
  CW_ASSIGN_OR_RETURN(const fs::Space space, fs::MeasureSpace(*root_));
  return bytes <= space.free_bytes - limits_.free_bytes_min
             ? absl::OkStatus()
             : absl::ResourceExhaustedError(
                   fmt::format("only {} bytes of the disk are free", space.free_bytes));
}

absl::Status RemoteEntries::Write(const std::string& path, std::string_view value) const {
  const std::string staged = fmt::format("{}/{}", kRemoteStaging, path.substr(path.rfind('/') + 1));
  // A killed agent may have left a partial file of this name.
  CW_RETURN_IF_ERROR(root_->Remove(staged));
  CW_ASSIGN_OR_RETURN(const fs::Fd file, root_->CreateFile(staged, kValueMode));
  absl::Status written = fs::WriteAll(file, value);
  if (written.ok()) {
    written = root_->Rename(staged, path);
  }
  if (!written.ok()) {
    root_->Remove(staged).IgnoreError();
  }
  return written;
}

void RemoteEntries::Uncount(const std::string& path) {
  if (const absl::StatusOr<fs::FileStat> stat = root_->Stat(path); stat.ok()) {
    entries_ = std::max<int64_t>(0, entries_ - 1);
    bytes_ = std::max<int64_t>(0, bytes_ - stat->bytes);
  }
}

absl::Status RemoteEntries::Store(std::string_view key, std::string_view value) {
  const auto bytes = static_cast<int64_t>(value.size());
  const std::string path = PathOf(key);
  Uncount(path);
  absl::Status stored = CheckRoom(bytes);
  if (stored.ok()) {
    stored = Write(path, value);
  }
  if (!stored.ok()) {
    root_->Remove(path).IgnoreError();
    return stored;
  }
  ++entries_;
  bytes_ += bytes;
  return absl::OkStatus();
}

void RemoteEntries::Remove(std::string_view key) {
  const std::string path = PathOf(key);
  Uncount(path);
  root_->Remove(path).IgnoreError();
}

}  // namespace cachewarm::agent

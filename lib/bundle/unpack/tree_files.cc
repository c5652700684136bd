// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/unpack/tree_files.h"

#include <algorithm>
#include <span>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/worker_pool.h"

namespace cachewarm::bundle {
namespace {

constexpr mode_t kPlainFileMode = 0444;
constexpr size_t kDirectoriesPerJob = 64;

// Returns the directories that the entries imply, those of each depth sorted by path. Directories
// of one depth are independent of each other.
std::vector<std::vector<std::string>> DirectoriesByDepth(const Config& config) {
  std::vector<std::vector<std::string>> levels;
  auto directories = ImpliedDirectories(config.entries);
  while (!directories.empty()) {
    // Move each path out of the set: an untrusted bundle may imply millions of long paths, which
    // must not be in memory twice.
    std::string path = std::move(directories.extract(directories.begin()).value());
    const auto depth = static_cast<size_t>(std::count(path.begin(), path.end(), '/'));
    levels.resize(std::max(levels.size(), depth + 1));
    levels[depth].push_back(std::move(path));
  }
  return levels;
}

// Creates directories whose parents exist. Runs on one thread.
absl::Status MakeSome(std::span<const std::string> paths, const fs::Dir& staging,
                      const UnpackOptions& options) {
  DirHandles handles(staging);
  for (const std::string& path : paths) {
    const SplitPath split(path);
    CW_ASSIGN_OR_RETURN(const fs::Dir* parent, handles.Open(split.directory));
    absl::Status made = parent->MakeDir(split.name, options.directory_mode);
    if (!made.ok() && !(absl::IsAlreadyExists(made) && options.keep_existing)) {
      return made;
    }
  }
  return absl::OkStatus();
}

}  // namespace

SplitPath::SplitPath(std::string_view path) : name(path) {
  if (const size_t slash = path.rfind('/'); slash != std::string_view::npos) {
    directory = path.substr(0, slash);
    name = path.substr(slash + 1);
  }
}

absl::StatusOr<const fs::Dir*> DirHandles::Open(std::string_view path) {
  if (path.empty()) {
    return &root_;
  }
  const auto found = std::find_if(handles_.begin(), handles_.end(),
                                  [&](const Handle& handle) { return handle.path == path; });
  if (found != handles_.end()) {
    std::rotate(handles_.begin(), found, found + 1);
    return &handles_.front().dir;
  }
  CW_ASSIGN_OR_RETURN(fs::Dir dir, root_.OpenDir(path));
  if (handles_.size() == kHandlesMax) {
    handles_.pop_back();
  }
  handles_.insert(handles_.begin(), {.path = std::string(path), .dir = std::move(dir)});
  return &handles_.front().dir;
}

absl::StatusOr<fs::Fd> TreeFiles::Make(const Entry& entry) {
  if (options_.wanted && !options_.wanted(entry)) {
    return fs::Fd();
  }
  const SplitPath split(entry.path);
  const mode_t mode = options_.mode_of ? options_.mode_of(entry) : kPlainFileMode;
  CW_ASSIGN_OR_RETURN(const fs::Dir* directory, handles_.Open(split.directory));
  absl::StatusOr<fs::Fd> file = directory->CreateFile(split.name, mode);
  if (!absl::IsAlreadyExists(file.status()) || !options_.keep_existing) {
    return file;
  }
  CW_ASSIGN_OR_RETURN(const fs::FileStat found, directory->Stat(split.name));
  if (found.type != fs::FileType::kFile) {
    return absl::AlreadyExistsError(
        fmt::format("\"{}\" is a file in this bundle, but a directory in another bundle of this "
                    "tree",
                    entry.path));
  }
  return fs::Fd();
}

absl::Status TreeFiles::Finish(const Entry& entry, const fs::Fd& file) {
  return options_.on_file ? options_.on_file(entry, file) : absl::OkStatus();
}

absl::Status MakeDirectories(const Config& config, const fs::Dir& staging,
                             const UnpackOptions& options) {
  for (const std::vector<std::string>& level : DirectoriesByDepth(config)) {
    const auto make = [&](size_t first, size_t last) {
      return MakeSome(std::span(level).subspan(first, last - first), staging, options);
    };
    CW_RETURN_IF_ERROR(level.size() <= kDirectoriesPerJob
                           ? make(0, level.size())
                           : ForEachBatch(options.threads, level.size(), kDirectoriesPerJob, make));
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::bundle

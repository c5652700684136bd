// SPDX-License-Identifier: Apache-2.0
#include "cli/tree.h"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"
#include "lib/capture/restore_rules.h"
#include "lib/fs/tree.h"

namespace cachewarm::cli {
namespace {

constexpr mode_t kTreeMode = 0755;

struct Destination {
  fs::Dir parent;
  std::string name;
  std::string staging;
  bundle::Limits limits;
};

// Returns true if the destination is missing or an empty directory, which rename(2) can replace.
absl::StatusOr<bool> IsFree(const Destination& destination) {
  const auto found = destination.parent.Stat(destination.name);
  if (absl::IsNotFound(found.status())) {
    return true;
  }
  CW_RETURN_IF_ERROR(found.status());
  bool empty = found->type == fs::FileType::kDirectory;
  if (empty) {
    CW_RETURN_IF_ERROR(
        fs::Walk(destination.parent, destination.name, {}, [&empty](const fs::WalkEntry&) {
          empty = false;
          return fs::WalkNext::kStop;
        }));
  }
  return empty;
}

absl::StatusOr<Destination> Prepare(const std::string& text) {
  const std::filesystem::path path =
      // With a slash at the end, parent_path() returns the directory itself, without the slash.
      std::filesystem::absolute(text).lexically_normal() / "";
  const std::filesystem::path plain = path.parent_path();
  CW_ASSIGN_OR_RETURN(fs::Dir parent, fs::Dir::Open(plain.parent_path().string()));
  Destination destination{.parent = std::move(parent), .name = plain.filename().string()};
  destination.staging = fmt::format(".{}.{}", destination.name, ::getpid());
  CW_ASSIGN_OR_RETURN(const bool free, IsFree(destination));
  if (!free) {
    return absl::AlreadyExistsError(
        fmt::format("{}: exists and is not empty; use a new directory", plain.string()));
  }
  return destination;
}

absl::Status Fill(const Destination& destination, const bundle::RepositoryRef& place,
                  const bundle::Bundle& found, Progress& progress, std::stop_token stop) {
  CW_RETURN_IF_ERROR(destination.parent.MakeDir(destination.staging, kTreeMode));
  CW_ASSIGN_OR_RETURN(const fs::Dir staging, destination.parent.OpenDir(destination.staging));
  CW_RETURN_IF_ERROR(bundle::Extract(
      place,
      {.bundle = found,
       .staging = staging,
       .options = {.limits = destination.limits,
                   .mode_of =
                       [](const bundle::Entry& entry) {
                         return mode_t{
                             caches::CacheTable::AllPresets().Classify(entry.path).mode()};
                       },
                   .wanted = capture::WantedAmong(
                       found.config.entries,
                       capture::FindUnwanted(found.config.entries, caches::CacheTable::AllPresets(),
                                             {})),
                   .check_contents = false},
       .on_progress = [&](int64_t done, int64_t total) { progress.Show(done, total); }},
      stop));
  CW_RETURN_IF_ERROR(destination.parent.Rename(destination.staging, destination.name));
  return destination.parent.Sync();
}

}  // namespace

absl::Status MakeTree(const bundle::RepositoryRef& place, const bundle::Bundle& found,
                      const NewTree& tree, Progress& progress, std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(Destination destination, Prepare(tree.directory));
  destination.limits = tree.limits;
  absl::Status filled = Fill(destination, place, found, progress, std::move(stop));
  if (!filled.ok()) {
    fs::RemoveTree(destination.parent, destination.staging).IgnoreError();
  }
  return filled;
}

}  // namespace cachewarm::cli

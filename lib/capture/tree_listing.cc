// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/tree_listing.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/capture/left_behind.h"
#include "lib/fs/tree.h"

namespace cachewarm::capture {
namespace {

constexpr std::string_view kOwnDirectory = ".cachewarm";

bool IsUnnamed(caches::Skip skip) {
  return skip == caches::Skip::kUnknownCache || skip == caches::Skip::kNotAllowed ||
         skip == caches::Skip::kUnsafePath;
}

// Returns true if the file matches no cache kind at all, whether or not the table selects that
// kind.
bool IsUnnamed(const caches::Placement& placement, std::string_view path) {
  return IsUnnamed(placement.skip) &&
         IsUnnamed(caches::CacheTable::AllPresets().Classify(path).skip);
}

// Sparse files below this size are packed.
constexpr int64_t kSparseBytesMin = int64_t{64} << 20;

// Returns why no bundle can hold the file; empty if one can.
std::string_view ReasonAgainst(const fs::WalkEntry& entry, const caches::Placement& placement) {
  const bundle::Limits limits;
  const fs::FileStat& stat = entry.stat;
  if (!bundle::CheckPath(entry.path, limits).ok() || bundle::IsWhiteout(entry.path)) {
    return "its name is not allowed in a bundle";
  }
  if (stat.bytes > limits.file_bytes_max) {
    return "larger than a file of a bundle may be";
  }
  if (stat.bytes > kSparseBytesMin && stat.bytes / limits.ratio_max > stat.allocated_bytes) {
    return "sparse";
  }
  if (placement.keep_mtime && stat.mtime_ns < 0) {
    return "modified before 1970";
  }
  return {};
}

class Lister {
 public:
  Lister(const caches::CacheTable& table, const ListLimits& limits)
      : table_(table), limits_(limits) {}

  absl::StatusOr<TreeListing> Run(const fs::Dir& tree) {
    CW_RETURN_IF_ERROR(fs::Walk(tree, "", {.name_bytes_max = 64 << 20},
                                [this](const fs::WalkEntry& entry) { return Visit(entry); }));
    CW_RETURN_IF_ERROR(exceeded_);
    RemoveIncompleteUnits();
    listing_.unnamed = unnamed_.Take();
    // Sort, because the walk orders by directory and not by whole paths ("a.b" sorts before "a/b").
    std::sort(listing_.files.begin(), listing_.files.end(),
              [](const TreeFile& a, const TreeFile& b) { return a.path < b.path; });
    return std::move(listing_);
  }

 private:
  fs::WalkNext Visit(const fs::WalkEntry& entry) {
    if (entry.stat.type == fs::FileType::kDirectory) {
      return entry.path == kOwnDirectory ? fs::WalkNext::kSkipDirectory : fs::WalkNext::kContinue;
    }
    if (entry.stat.type != fs::FileType::kFile) {
      ++listing_.left_behind["not a regular file"];
      return fs::WalkNext::kContinue;
    }
    caches::Placement placement = table_.Classify(entry.path);
    if (!placement.carried()) {
      ++listing_.left_behind[std::string(caches::SkipName(placement.skip))];
      if (IsUnnamed(placement, entry.path)) {
        unnamed_.Add(entry.path, entry.stat.bytes);
      }
    } else if (const std::string_view reason = ReasonAgainst(entry, placement); !reason.empty()) {
      ++listing_.left_behind[std::string(reason)];
      incomplete_.insert({placement.unit, placement.autotune_set});
    } else {
      return Add(entry, std::move(placement));
    }
    return fs::WalkNext::kContinue;
  }

  fs::WalkNext Add(const fs::WalkEntry& entry, caches::Placement placement) {
    path_bytes_ += std::ssize(entry.path);
    if (std::ssize(listing_.files) >= limits_.files_max) {
      exceeded_ = absl::ResourceExhaustedError(fmt::format(
          "the directory has more than {} files of the caches in spec.caches, more than "
          "a bundle may hold: select fewer caches",
          limits_.files_max));
      return fs::WalkNext::kStop;
    }
    if (path_bytes_ > limits_.path_bytes_max) {
      exceeded_ = absl::ResourceExhaustedError(
          fmt::format("the paths of the files in the directory take more than {} bytes: select "
                      "fewer caches in spec.caches",
                      limits_.path_bytes_max));
      return fs::WalkNext::kStop;
    }
    listing_.files.push_back({entry.path, std::move(placement), entry.stat});
    return fs::WalkNext::kContinue;
  }

  void RemoveIncompleteUnits() {
    incomplete_.erase("");
    const auto is_incomplete = [this](const TreeFile& file) {
      return incomplete_.contains(file.placement.unit) ||
             incomplete_.contains(file.placement.autotune_set);
    };
    if (const auto erased = std::erase_if(listing_.files, is_incomplete); erased > 0) {
      listing_.left_behind["needs a file that is left out"] += static_cast<int64_t>(erased);
    }
  }

  const caches::CacheTable& table_;
  const ListLimits& limits_;
  TreeListing listing_;
  LeftBehindSum unnamed_;
  int64_t path_bytes_ = 0;
  std::set<std::string, std::less<>> incomplete_;  // units and autotune sets that lack a file
  absl::Status exceeded_;
};

}  // namespace

absl::StatusOr<TreeListing> ListTree(const fs::Dir& tree, const caches::CacheTable& table,
                                     const ListLimits& limits) {
  return Lister(table, limits).Run(tree);
}

}  // namespace cachewarm::capture

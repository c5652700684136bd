// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/pack/difference.h"

#include <functional>
#include <set>
#include <string_view>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/bundle/pack/file_digest.h"
#include "lib/bundle/worker_pool.h"

namespace cachewarm::bundle {
namespace {

// If the base bundle has this many layers, the new bundle is packed whole instead of as one more
// layer. Otherwise removed files would accumulate in the old layers, and each layer adds one
// request to a fetch.
constexpr size_t kLayersBeforeRepack = 8;

bool MayBeUnchanged(const Entry& a, const Entry& b) {
  return a.bytes == b.bytes && a.kind == b.kind && a.mtime_ns == b.mtime_ns;
}

// Sets kept[i] to null, for i in [first, last), if the content of file i differs from that
// of the entry kept[i].
absl::Status Compare(const PackTree& tree, size_t first, size_t last,
                     std::vector<const Entry*>& kept) {
  for (size_t i = first; i < last; ++i) {
    if (kept[i] == nullptr) {
      continue;
    }
    CW_ASSIGN_OR_RETURN(const Digest digest, DigestOfFile(tree.files[i]));
    if (digest != kept[i]->digest) {
      kept[i] = nullptr;
    }
  }
  return absl::OkStatus();
}

// Returns the topmost of `path` and its parents that does not exist in the new tree. Empty if
// the new tree contains `path`, or a file in place of one of its parents.
std::string_view HighestRemoved(std::string_view path,
                                const std::set<std::string, std::less<>>& directories,
                                const std::set<std::string_view>& files) {
  for (size_t end = path.find('/');; end = path.find('/', end + 1)) {
    const std::string_view part = path.substr(0, end);
    if (files.contains(part)) {
      return {};
    }
    if (!directories.contains(part)) {
      return part;
    }
    if (end == std::string_view::npos) {
      return {};
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<const Entry*>> FindUnchanged(const Bundle& base, const PackTree& tree,
                                                        int threads, const std::stop_token& stop) {
  std::vector<const Entry*> kept(tree.entries.size(), nullptr);
  auto old = base.config.entries.begin();
  for (size_t i = 0; i < tree.entries.size(); ++i) {
    const Entry& entry = tree.entries[i];
    while (old != base.config.entries.end() && old->path < entry.path) {
      ++old;
    }
    if (old != base.config.entries.end() && old->path == entry.path &&
        MayBeUnchanged(*old, entry)) {
      kept[i] = &*old;
    }
  }
  CW_RETURN_IF_ERROR(
      ForEachBatch(threads, kept.size(), kFilesPerJob, [&](size_t first, size_t last) {
        return stop.stop_requested() ? absl::CancelledError("packing was stopped")
                                     : Compare(tree, first, last, kept);
      }));
  return kept;
}

bool IsLayerWorthwhile(const Bundle& base, const std::vector<const Entry*>& kept,
                       const PackTree& tree) {
  int64_t all_bytes = 0;
  int64_t kept_bytes = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    all_bytes += tree.entries[i].bytes;
    kept_bytes += kept[i] != nullptr ? kept[i]->bytes : 0;
  }
  return base.manifest.layers.size() < kLayersBeforeRepack && kept_bytes > all_bytes / 2 &&
         kept_bytes > FrameBytes(base.config) / 2;
}

std::vector<std::string> WhiteoutsOf(const Config& base, const PackTree& tree) {
  const std::set<std::string, std::less<>> directories(tree.directories.begin(),
                                                       tree.directories.end());
  std::set<std::string_view> files;
  for (const Entry& entry : tree.entries) {
    files.insert(entry.path);
  }
  std::set<std::string> whiteouts;
  for (const Entry& entry : base.entries) {
    const std::string_view removed = HighestRemoved(entry.path, directories, files);
    if (!removed.empty()) {
      const size_t name = removed.rfind('/') + 1;
      whiteouts.insert(fmt::format("{}.wh.{}", removed.substr(0, name), removed.substr(name)));
    }
  }
  return {whiteouts.begin(), whiteouts.end()};
}

std::vector<Entry> RetainedEntries(const Config& base, const PackTree& tree) {
  const std::set<std::string, std::less<>> directories(tree.directories.begin(),
                                                       tree.directories.end());
  std::set<std::string_view> files;
  for (const Entry& entry : tree.entries) {
    files.insert(entry.path);
  }
  std::vector<Entry> staying;
  for (const Entry& entry : base.entries) {
    if (!HighestRemoved(entry.path, directories, files).empty()) {
      staying.push_back(entry);
    }
  }
  return staying;
}

}  // namespace cachewarm::bundle

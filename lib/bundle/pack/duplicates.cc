// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/pack/duplicates.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/digest.h"
#include "lib/base/status.h"
#include "lib/bundle/pack/file_digest.h"
#include "lib/bundle/tar.h"
#include "lib/bundle/worker_pool.h"

namespace cachewarm::bundle {
namespace {

// Smaller files are not searched for duplicates: many have equal sizes by chance, and reading all
// of them twice takes longer than packing the few duplicates. In a cache of 20,000 files, the 285
// files above 32 KB hold 99.8 % of the duplicate bytes.
constexpr int64_t kDuplicateBytesMin = 32LL << 10;
// Besides the content of a file that has a duplicate, a frame must hold at least two headers: that
// of the file and that of a hard link to it.
constexpr int64_t kHeadersBytesMin = 2 * kTarBlockBytes;
// Number of bytes at the start of a file that are compared before the whole file is read. Most
// files of equal size differ here.
constexpr size_t kHeadBytes = 4096;
static_assert(kHeadBytes <= kDuplicateBytesMin);

auto Shape(const Entry& entry) {
  return std::pair(entry.bytes, entry.mtime_ns);
}

// Returns those of `files` that share their key with another one, ascending.
template <typename KeyOf>
std::vector<size_t> WithSharedKey(std::vector<size_t> files, const KeyOf& key_of) {
  std::stable_sort(files.begin(), files.end(),
                   [&](size_t a, size_t b) { return key_of(a) < key_of(b); });
  std::vector<size_t> shared;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto is_like = [&](size_t other) { return key_of(files[i]) == key_of(files[other]); };
    if ((i > 0 && is_like(i - 1)) || (i + 1 < files.size() && is_like(i + 1))) {
      shared.push_back(files[i]);
    }
  }
  std::sort(shared.begin(), shared.end());
  return shared;
}

// Returns the files that share size and mtime with another file, in the order of the tree. Ignores
// files of less than kDuplicateBytesMin and of more than `bytes_max` bytes.
std::vector<size_t> FindCandidates(const PackTree& tree, int64_t bytes_max) {
  std::vector<size_t> files(tree.entries.size());
  std::iota(files.begin(), files.end(), size_t{0});
  std::erase_if(files, [&](size_t file) {
    const int64_t bytes = tree.entries[file].bytes;
    return bytes < kDuplicateBytesMin || bytes > bytes_max;
  });
  return WithSharedKey(std::move(files), [&](size_t file) { return Shape(tree.entries[file]); });
}

// Returns a hash of the first kHeadBytes bytes of a file that is larger than that.
absl::StatusOr<size_t> HashHead(const PackFile& file) {
  CW_ASSIGN_OR_RETURN(const auto source, file.open());
  std::array<char, kHeadBytes> head{};
  for (std::span<char> rest = head; !rest.empty();) {
    CW_ASSIGN_OR_RETURN(const size_t got, source->Read(rest));
    if (got == 0) {
      return ChangedWhileRead(file);
    }
    rest = rest.subspan(got);
  }
  return std::hash<std::string_view>()({head.data(), head.size()});
}

// Calls `read` for the number of each of `files`, on several threads.
absl::Status ForEachFile(const std::vector<size_t>& files, int threads, const std::stop_token& stop,
                         const std::function<absl::Status(size_t file)>& read) {
  return ForEachBatch(threads, files.size(), kFilesPerJob,
                      [&](size_t first, size_t last) -> absl::Status {
                        for (size_t i = first; i < last; ++i) {
                          if (stop.stop_requested()) {
                            return absl::CancelledError("packing was stopped");
                          }
                          CW_RETURN_IF_ERROR(read(files[i]));
                        }
                        return absl::OkStatus();
                      });
}

// Returns those of `files` that may have the same content as another one, and sets their digests.
// Hashes only files whose first bytes are equal to those of another one.
absl::StatusOr<std::vector<size_t>> HashCandidates(PackTree& tree, std::vector<size_t> files,
                                                   int threads, const std::stop_token& stop) {
  std::vector<size_t> heads(tree.files.size());
  CW_RETURN_IF_ERROR(ForEachFile(files, threads, stop, [&](size_t file) -> absl::Status {
    CW_ASSIGN_OR_RETURN(heads[file], HashHead(tree.files[file]));
    return absl::OkStatus();
  }));
  files = WithSharedKey(std::move(files), [&](size_t file) {
    return std::pair(Shape(tree.entries[file]), heads[file]);
  });
  CW_RETURN_IF_ERROR(ForEachFile(files, threads, stop, [&](size_t file) -> absl::Status {
    CW_ASSIGN_OR_RETURN(tree.entries[file].digest, DigestOfFile(tree.files[file]));
    return absl::OkStatus();
  }));
  return files;
}

// A file whose content the tar stores; its duplicates are hard links to it. `bytes` is the size in
// the tar of the file and all links to it.
struct Stored {
  size_t file = 0;
  int64_t bytes = 0;
};

}  // namespace

absl::Status FindDuplicates(PackTree& tree, int64_t frame_bytes, int threads,
                            const std::stop_token& stop) {
  CW_ASSIGN_OR_RETURN(
      const std::vector<size_t> candidates,
      HashCandidates(tree, FindCandidates(tree, frame_bytes - kHeadersBytesMin), threads, stop));
  if (candidates.empty()) {
    return absl::OkStatus();
  }
  tree.content_of.resize(tree.files.size());
  std::iota(tree.content_of.begin(), tree.content_of.end(), size_t{0});
  std::map<std::pair<Digest, int64_t>, Stored> known;
  for (const size_t file : candidates) {
    const Entry& entry = tree.entries[file];
    const auto [found, is_new] = known.try_emplace({entry.digest, entry.mtime_ns});
    Stored& stored = found->second;
    if (!is_new) {
      tree.content_of[file] = stored.file;
      CW_ASSIGN_OR_RETURN(const int64_t bytes, BytesInTar(tree, tree.before_files() + file));
      if (stored.bytes + bytes <= frame_bytes) {
        stored.bytes += bytes;
        continue;
      }
      tree.content_of[file] = file;
    }
    CW_ASSIGN_OR_RETURN(const int64_t bytes, BytesInTar(tree, tree.before_files() + file));
    stored = {.file = file, .bytes = bytes};
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::bundle

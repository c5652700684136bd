// SPDX-License-Identifier: Apache-2.0
#include "agent/steps/fetching/reuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <unordered_map>
#include <utility>

#include "agent/tree/pod_access.h"
#include "agent/tree/root_layout.h"
#include "lib/base/status.h"
#include "lib/bundle/buffer.h"
#include "lib/bundle/unpack/new_file.h"
#include "lib/bundle/unpack/tree_files.h"
#include "lib/bundle/worker_pool.h"
#include "lib/fs/file.h"

namespace cachewarm::agent {
namespace {

constexpr size_t kEntriesAJob = 256;
constexpr int64_t kPieceBytes = 256LL << 10;

// A file of another tree, as the journal of that tree records it.
struct Source {
  const std::string* generation = nullptr;  // null: no tree has a file with this content
  EntryRecord record;

  std::string Path() const {
    return fmt::format("{}/{}", GenerationPath(*generation), record.path);
  }
};

using Sources = std::unordered_map<std::string, Source>;  // by sha256 of the content

// Finds, for each content in `config`, a file with the same digest in another tree. Skips trees
// without a readable journal.
Sources FindSources(const ReuseJob& job, const bundle::Config& config) {
  Sources wanted;
  for (const bundle::Entry& entry : config.entries) {
    wanted.try_emplace(entry.digest.hex());
  }
  size_t found = 0;
  for (const std::string& generation : job.sources) {
    absl::StatusOr<std::vector<EntryRecord>> records = ReadEntryRecords(job.root, generation);
    if (!records.ok()) {
      continue;
    }
    for (EntryRecord& record : *records) {
      const auto source = wanted.find(record.digest.hex());
      if (source != wanted.end() && source->second.generation == nullptr) {
        source->second.generation = &generation;
        source->second.record = std::move(record);
        ++found;
      }
    }
  }
  return found == 0 ? Sources() : wanted;
}

// Reads all of `from` in chunks, and writes it to `to` if `to` is open. Returns the digest.
absl::StatusOr<Digest> CopyContent(const fs::Fd& from, const fs::Fd& to, std::span<char> piece) {
  Sha256 hash;
  for (int64_t offset = 0;;) {
    CW_ASSIGN_OR_RETURN(const size_t got, fs::ReadAt(from, offset, piece.data(), piece.size()));
    if (got == 0) {
      return hash.Finish();
    }
    hash.Update({piece.data(), got});
    if (to.ok()) {
      CW_RETURN_IF_ERROR(fs::WriteAll(to, {piece.data(), got}));
    }
    offset += static_cast<int64_t>(got);
  }
}

// Result of placing one file into the new tree.
struct Placed {
  bool is_there = false;
  fs::FileStat stat;
};

// Places files into the new tree as links or copies. Keeps directories open, because adjacent
// entries are usually in the same directory. Use on one thread.
class Placer {
 public:
  Placer(const ReuseJob& job, const Sources& sources)
      : job_(job), sources_(sources), from_(job.root), to_(job.staging) {}

  absl::StatusOr<Placed> Place(const bundle::Entry& entry) {
    const auto found = sources_.find(entry.digest.hex());
    if (found == sources_.end() || found->second.generation == nullptr) {
      return Placed{};
    }
    const Source& source = found->second;
    const std::string path = source.Path();
    const bundle::SplitPath split(path);
    const absl::StatusOr<const fs::Dir*> from = from_.Open(split.directory);
    if (!from.ok()) {
      return Placed{};
    }
    const absl::StatusOr<fs::FileStat> stat = (*from)->Stat(split.name);
    if (!stat.ok() || !IsStill(source.record, *stat) || entry.bytes != stat->bytes) {
      return Placed{};
    }
    const Original original{.source = source, .dir = **from, .name = split.name};
    // If only the ctime differs, compare the content: either the file was modified, or only a hard
    // link to it was created or removed.
    const bool is_known = stat->ctime_ns == source.record.ctime_ns;
    const bool may_link = MayLink(entry, *stat);
    return may_link && is_known ? Link(entry, original, *stat)
                                : Read(entry, original, {.is_known = is_known, .link = may_link});
  }

 private:
  struct Original {
    const Source& source;
    const fs::Dir& dir;
    std::string_view name;
  };

  static bool IsStill(const EntryRecord& record, const fs::FileStat& stat) {
    return stat.inode == record.inode && stat.bytes == record.bytes &&
           stat.mtime_ns == record.mtime_ns;
  }

  struct Reading {
    bool is_known = false;  // inode, size and times match the journal
    bool link = false;      // the file may be hard-linked
  };

  absl::StatusOr<Placed> Read(const bundle::Entry& entry, const Original& original,
                              const Reading& reading) {
    const Source& source = original.source;
    if (job_.on_opening) {
      job_.on_opening(*source.generation, source.record.path);
    }
    const absl::StatusOr<fs::Fd> file = original.dir.OpenFile(original.name);
    if (!file.ok()) {
      return Placed{};
    }
    const absl::StatusOr<fs::FileStat> stat = fs::StatFile(*file);
    if (!stat.ok() || !IsStill(source.record, *stat)) {
      return Placed{};
    }
    if (reading.link) {
      return HasContent(entry, *file) ? Link(entry, original, *stat) : Placed{};
    }
    return Copy(entry, *file, reading.is_known);
  }

  bool HasContent(const bundle::Entry& entry, const fs::Fd& file) {
    const absl::StatusOr<Digest> digest = CopyContent(file, fs::Fd(), PieceFor(entry));
    return digest.ok() && *digest == entry.digest;
  }

  // Returns a buffer that all files share, because malloc would map and clear a large buffer for
  // each file.
  std::span<char> PieceFor(const bundle::Entry& entry) {
    return piece_.Make(static_cast<size_t>(std::clamp<int64_t>(entry.bytes, 1, kPieceBytes)));
  }

  bool MayLink(const bundle::Entry& entry, const fs::FileStat& stat) const {
    const caches::Placement placement = job_.table.Classify(entry.path);
    return placement.hard_link && !placement.writable && stat.mode == placement.mode() &&
           HasPodOwner(stat, job_.mount) &&
           (entry.mtime_ns == 0 || entry.mtime_ns == stat.mtime_ns);
  }

  absl::StatusOr<Placed> Link(const bundle::Entry& entry, const Original& original,
                              const fs::FileStat& stat) {
    const bundle::SplitPath split(entry.path);
    CW_ASSIGN_OR_RETURN(const fs::Dir* to, to_.Open(split.directory));
    const absl::Status linked = original.dir.LinkTo(original.name, *to, split.name);
    if (!linked.ok()) {
      // The source has too many links, is on another file system, or was removed: fetch the file
      // from the bundle instead.
      return Placed{};
    }
    CW_ASSIGN_OR_RETURN(const fs::FileStat made, to->Stat(split.name));
    if (made.type == fs::FileType::kFile && made.inode == stat.inode && made.bytes == stat.bytes &&
        made.mtime_ns == stat.mtime_ns) {
      return Placed{.is_there = true, .stat = made};
    }
    // A pod replaced the source file between the two checks.
    CW_RETURN_IF_ERROR(to->Remove(split.name));
    return Placed{};
  }

  absl::StatusOr<Placed> Copy(const bundle::Entry& entry, const fs::Fd& from, bool is_known) {
    CW_ASSIGN_OR_RETURN(
        const fs::Fd file,
        job_.staging.CreateFile(entry.path, mode_t{job_.table.Classify(entry.path).mode()}));
    bool is_right = false;
    if (is_known) {
      CW_ASSIGN_OR_RETURN(is_right, fs::Reflink(from, file));
    }
    if (!is_right) {
      CW_ASSIGN_OR_RETURN(const Digest digest, CopyContent(from, file, PieceFor(entry)));
      is_right = digest == entry.digest;
    }
    if (!is_right) {
      CW_RETURN_IF_ERROR(job_.staging.Remove(entry.path));
      return Placed{};
    }
    CW_RETURN_IF_ERROR(bundle::SetMtime(entry, file));
    CW_ASSIGN_OR_RETURN(const fs::FileStat stat, SetPodOwner(file, job_.mount));
    return Placed{.is_there = true, .stat = stat};
  }

  const ReuseJob& job_;
  const Sources& sources_;
  bundle::DirHandles from_;
  bundle::DirHandles to_;
  bundle::Buffer piece_;
};

}  // namespace

absl::StatusOr<Reused> ReuseContents(
    const ReuseJob& job, const bundle::Config& config,
    const std::function<void(const bundle::Entry&, const fs::FileStat&)>& placed,
    std::stop_token stop) {
  Sources sources;
  // Not vector<bool>: threads write adjacent elements, which would share a byte.
  std::vector<char> there(config.entries.size(), 0);
  const auto place = [&](size_t first, size_t last) -> absl::Status {
    Placer placer(job, sources);
    for (size_t i = first; i < last; ++i) {
      if (stop.stop_requested()) {
        return absl::CancelledError("fetch stopped");
      }
      if (!job.excluded.empty() && job.excluded[i]) {
        continue;
      }
      const bundle::Entry& entry = config.entries[i];
      absl::StatusOr<Placed> made = placer.Place(entry);
      if (absl::IsAlreadyExists(made.status())) {
        continue;  // keep the file that an earlier bundle has at this path
      }
      CW_RETURN_IF_ERROR(made.status());
      if (made->is_there) {
        there[i] = 1;
        placed(entry, made->stat);
      }
    }
    return absl::OkStatus();
  };
  bundle::WorkerPool pool(job.threads);  // declared last, because its jobs use the above
  pool.Post([&](size_t) {
    sources = FindSources(job, config);
    return absl::OkStatus();
  });
  CW_RETURN_IF_ERROR(job.make_directories());
  CW_RETURN_IF_ERROR(pool.Wait(0));
  if (sources.empty()) {
    return Reused{.present = job.excluded};
  }
  int64_t last_job = 0;
  for (size_t first = 0; first < there.size(); first += kEntriesAJob, ++last_job) {
    pool.Post(
        [&, first](size_t) { return place(first, std::min(first + kEntriesAJob, there.size())); });
  }
  CW_RETURN_IF_ERROR(pool.Wait(last_job));
  Reused reused;
  for (size_t i = 0; i < there.size(); ++i) {
    reused.present.push_back(there[i] != 0 || (!job.excluded.empty() && job.excluded[i]));
    reused.files += there[i];
    reused.bytes += there[i] != 0 ? config.entries[i].bytes : 0;
  }
  return reused;
}

}  // namespace cachewarm::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/evidence/tree_watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/evidence/event_log.h"
#include "agent/evidence/inotify.h"
#include "agent/evidence/own_reads.h"
#include "agent/evidence/tree_scan.h"
#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/caches/cache_table.h"

namespace cachewarm::agent {
namespace {

// Returns true for paths that no bundle can contain. Their events are dropped to save memory.
bool IsNoise(std::string_view path) {
  const caches::Skip skip = caches::CacheTable::AllPresets().Classify(path).skip;
  return skip == caches::Skip::kLock || skip == caches::Skip::kTemporary ||
         skip == caches::Skip::kUnsafePath;
}

struct Tree {
  Tree(WatchedTree t, fs::Dir d, const EventLog::Limits& limits, WallTime since)
      : tree(std::move(t)), root(std::move(d)), log(limits, since) {}

  WatchedTree tree;
  fs::Dir root;
  EventLog log;
  int directories = 0;
  bool partial = false;  // a directory is not watched, so all records of this tree are incomplete
};

// A watched directory: the tree that contains it, and its path in that tree.
struct Place {
  Tree* tree = nullptr;
  std::string path;
};

// An event that was read during a scan.
struct DeferredEvent {
  int watch = -1;
  uint32_t mask = 0;
  std::string name;
  WallTime time{};
};

// A scan reads the kernel's queue once per so many directories. Each raises about four events, and
// the queue holds 16,384 by default.
constexpr uint64_t kScannedPerRead = 256;
constexpr size_t kDeferredMax = 100'000;

std::string Join(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : fmt::format("{}/{}", directory, name);
}

std::optional<WallTime> ModifiedAt(const Tree& tree, const std::string& path) {
  const absl::StatusOr<fs::FileStat> stat = tree.root.Stat(path);
  if (!stat.ok()) {
    return std::nullopt;
  }
  return WallTime(Duration(stat->mtime_ns / 1'000'000));
}

class InotifyWatcher final : public Watcher {
 public:
  InotifyWatcher(const WatcherLimits& limits, const Clock& clock, Log& log, Inotify inotify,
                 fs::Fd wake)
      : limits_(limits),
        clock_(clock),
        log_(log),
        inotify_(std::move(inotify)),
        wake_(std::move(wake)),
        thread_([this](std::stop_token stop) { Loop(std::move(stop)); }) {}

  ~InotifyWatcher() override {
    thread_.request_stop();
    Wake();
  }

  absl::Status AddTree(const WatchedTree& tree) override {
    CW_ASSIGN_OR_RETURN(fs::Dir root, fs::Dir::Open(tree.directory));
    const std::lock_guard lock(mutex_);
    if (trees_.contains(tree.generation)) {
      return absl::OkStatus();
    }
    const EventLog::Limits limits{.events_max = static_cast<size_t>(limits_.events_max),
                                  .paths_max = static_cast<size_t>(limits_.paths_max),
                                  .keep = limits_.keep};
    auto added = std::make_unique<Tree>(tree, std::move(root), limits,
                                        tree.fresh ? WallTime{} : clock_.Now());
    Tree& reference = *trees_.emplace(tree.generation, std::move(added)).first->second;
    Scan(reference, "", std::nullopt);
    HandleDeferred();
    if (IsWorkLeft()) {
      Wake();
    }
    return absl::OkStatus();
  }

  void RemoveTree(std::string_view generation) override {
    const std::lock_guard lock(mutex_);
    const auto found = trees_.find(generation);
    if (found == trees_.end()) {
      return;
    }
    std::erase_if(places_, [&](const auto& entry) {
      if (entry.second.tree != found->second.get()) {
        return false;
      }
      inotify_.Forget(entry.first);
      return true;
    });
    trees_.erase(found);
  }

  EventRecord Read(std::string_view warmup_uid, std::string_view run_as, WallTime begin,
                   WallTime end) override {
    return Collect(begin, end, [&](const WatchedTree& tree) {
      return tree.warmup_uid == warmup_uid &&
             (run_as.empty() || tree.run_as.empty() || tree.run_as == run_as);
    });
  }

  EventRecord ReadTree(std::string_view generation, WallTime begin, WallTime end) override {
    return Collect(begin, end,
                   [&](const WatchedTree& tree) { return tree.generation == generation; });
  }

  OwnReads BeginOwnReads(std::string_view generation) override {
    return own_reads_.Begin(generation);
  }

  int directories() const override {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(places_.size());
  }

  int events() const override {
    const std::lock_guard lock(mutex_);
    size_t sum = 0;
    for (const auto& [generation, tree] : trees_) {
      sum += tree->log.size();
    }
    return static_cast<int>(sum);
  }

  int overflows() const override {
    const std::lock_guard lock(mutex_);
    return overflows_;
  }

 private:
  void Wake() const {
    const uint64_t one = 1;
    static_cast<void>(!::write(wake_.get(), &one, sizeof(one)));
  }

  void Loop(std::stop_token stop) {
    while (!stop.stop_requested()) {
      pollfd waiting[] = {{.fd = inotify_.fd(), .events = POLLIN, .revents = 0},
                          {.fd = wake_.get(), .events = POLLIN, .revents = 0}};
      ::poll(waiting, 2, -1);
      uint64_t count = 0;
      static_cast<void>(!::read(wake_.get(), &count, sizeof(count)));
      const OwnReadScopes::Ended ended = own_reads_.EndedScopes();
      const std::lock_guard lock(mutex_);
      const uint64_t requested = requested_;
      const WallTime now = clock_.Now();
      HandleDeferred();
      inotify_.Drain([this, now](const Inotify::Event& event) { Handle(event, now); });
      HandleDeferred();
      if (IsWorkLeft()) {
        Wake();
      }
      own_reads_.Forget(ended);
      completed_ = requested;
      drained_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    drained_.notify_all();
  }

  template <typename Wanted>
  EventRecord Collect(WallTime begin, WallTime end, const Wanted& wanted) {
    std::unique_lock lock(mutex_);
    const uint64_t ticket = ++requested_;
    Wake();
    drained_.wait(lock, [this, ticket] { return stopped_ || completed_ >= ticket; });
    EventRecord record;
    bool any = false;
    for (const auto& [generation, tree] : trees_) {
      if (wanted(tree->tree)) {
        any = true;
        tree->log.Read(begin, end, record);
        record.complete = record.complete && !tree->partial;
      }
    }
    record.complete = record.complete && any && !stopped_;
    SortByTime(record);
    return record;
  }

  // Handles the events that were read during scans, and then an overflow. One pass: further ones
  // may arrive meanwhile (IsWorkLeft), as long as engines write.
  void HandleDeferred() {
    for (const DeferredEvent& event : std::exchange(deferred_, {})) {
      Handle({.watch = event.watch, .mask = event.mask, .name = event.name}, event.time);
    }
    if (std::exchange(is_overflowed_, false)) {
      Overflow(clock_.Now());
    }
  }

  bool IsWorkLeft() const { return is_overflowed_ || !deferred_.empty(); }

  // Called during a scan. A scan opens each directory, and this raises events too: without reading
  // them, the scan of a few thousand directories fills the kernel's queue, and the scan after that
  // overflow fills it again. Drops those events and keeps the others for HandleDeferred().
  void ReadDuringScan() {
    if (++directories_scanned_ % kScannedPerRead != 0) {
      return;
    }
    const WallTime now = clock_.Now();
    inotify_.Drain([this, now](const Inotify::Event& event) {
      constexpr uint32_t kRemoved = IN_IGNORED | IN_UNMOUNT;
      const bool is_of_directory = (event.mask & IN_ISDIR) != 0 || event.name.empty();
      if ((event.mask & IN_Q_OVERFLOW) != 0) {
        NoteOverflow();
      } else if (is_of_directory && (event.mask & (IN_CREATE | IN_MOVED_TO | kRemoved)) == 0) {
        return;
      } else if (deferred_.size() >= kDeferredMax) {
        NoteOverflow();
      } else {
        deferred_.push_back({.watch = event.watch,
                             .mask = event.mask,
                             .name = std::string(event.name),
                             .time = now});
      }
    });
  }

  void NoteOverflow() {
    overflows_ += is_overflowed_ ? 0 : 1;
    is_overflowed_ = true;
  }

  void Handle(const Inotify::Event& event, WallTime now) {
    if ((event.mask & IN_Q_OVERFLOW) != 0) {
      NoteOverflow();
      return;
    }
    const auto found = places_.find(event.watch);
    if (found == places_.end()) {
      return;
    }
    if ((event.mask & (IN_IGNORED | IN_UNMOUNT)) != 0) {
      --found->second.tree->directories;
      places_.erase(found);
      return;
    }
    if (event.name.empty()) {
      return;  // the event is about the watched directory itself
    }
    Tree& tree = *found->second.tree;
    const std::string path = Join(found->second.path, event.name);
    if ((event.mask & IN_ISDIR) == 0) {
      Record(tree, path, event.mask, now);
    } else if ((event.mask & IN_CREATE) != 0) {
      Scan(tree, path, FileEvent{.type = FileEventType::kCreated, .time = now, .path = {}});
    } else if ((event.mask & IN_MOVED_TO) != 0) {
      Scan(tree, path, FileEvent{.type = FileEventType::kDirectoryIn, .time = now, .path = {}});
    }
  }

  // Records one event for each bit of `mask`: inotify(7) does not guarantee that only one is set.
  void Record(Tree& tree, const std::string& path, uint32_t mask, WallTime now) {
    // Most events are about known paths, and a look-up is cheaper than to match all patterns.
    if (!tree.log.Knows(path) && IsNoise(path)) {
      return;
    }
    static constexpr std::pair<uint32_t, FileEventType> kTypes[] = {
        {IN_CREATE, FileEventType::kCreated},      {IN_MOVED_TO, FileEventType::kMovedTo},
        {IN_OPEN, FileEventType::kOpened},         {IN_CLOSE_NOWRITE, FileEventType::kRead},
        {IN_CLOSE_WRITE, FileEventType::kWritten},
    };
    for (const auto& [bit, type] : kTypes) {
      if ((mask & bit) == 0) {
        continue;
      }
      FileEvent event{.type = type, .time = now, .path = path};
      if (type == FileEventType::kWritten) {
        event.mtime = ModifiedAt(tree, path).value_or(now);
      }
      if (!own_reads_.Consume(tree.tree.generation, event)) {
        tree.log.Add(event);
      }
    }
  }

  // Watches `path` and everything below it. Files that were created before their directory was
  // watched have raised no event. Therefore, if `found` is set, that event is recorded for each
  // existing file; if not, nothing is recorded.
  void Scan(Tree& tree, const std::string& path, const std::optional<FileEvent>& found) {
    const ScanLimits limits{.depth_max = limits_.depth_max};
    const ScanVisitor visitor{
        .directory = [&](std::string_view at, int fd) { return WatchOne(tree, at, fd); },
        .file =
            [&](std::string_view at) {
              if (found.has_value() && !IsNoise(at)) {
                FileEvent event = *found;
                event.path = std::string(at);
                tree.log.Add(event);
              }
            }};
    if (const absl::Status scanned = ScanTree(tree.root, path, limits, visitor); !scanned.ok()) {
      MarkPartial(tree, scanned);
    }
  }

  bool WatchOne(Tree& tree, std::string_view path, int fd) {
    ReadDuringScan();
    if (tree.directories >= limits_.directories_per_tree ||
        places_.size() >= static_cast<size_t>(limits_.directories_max)) {
      MarkPartial(tree, absl::ResourceExhaustedError("too many directories to watch"));
      return false;
    }
    const absl::StatusOr<int> watch = inotify_.Watch(fd);
    if (!watch.ok()) {
      MarkPartial(tree, watch.status());
      return false;
    }
    // A renamed directory keeps its watch number; only its path changes.
    const auto [at, added] = places_.try_emplace(*watch);
    if (added) {
      ++tree.directories;
    }
    at->second = {.tree = &tree, .path = std::string(path)};
    return true;
  }

  // Marks the records as incomplete until now, and watches directories whose creation was lost.
  void Overflow(WallTime now) {
    log_.Warning("file events lost: inotify queue overflow",
                 {{"trees", static_cast<int64_t>(trees_.size())}});
    for (const auto& [generation, tree] : trees_) {
      tree->log.Lose(now);
      Scan(*tree, "", std::nullopt);
    }
  }

  void MarkPartial(Tree& tree, const absl::Status& why) {
    if (!tree.partial) {
      log_.Warning("tree only partially watched; pod starts in it will be reported as unknown",
                   {{"generation", tree.tree.generation}, {"err", Message(why)}});
    }
    tree.partial = true;
  }

  const WatcherLimits limits_;
  const Clock& clock_;
  Log& log_;
  Inotify inotify_;
  const fs::Fd wake_;
  OwnReadScopes own_reads_;

  mutable std::mutex mutex_;
  std::condition_variable drained_;
  std::map<std::string, std::unique_ptr<Tree>, std::less<>> trees_;
  std::unordered_map<int, Place> places_;  // by inotify watch number
  uint64_t requested_ = 0;
  uint64_t completed_ = 0;
  int overflows_ = 0;
  bool is_overflowed_ = false;           // events were lost, and Overflow() has not been called yet
  std::vector<DeferredEvent> deferred_;  // in order
  uint64_t directories_scanned_ = 0;
  bool stopped_ = false;
  std::jthread thread_;  // last, because the thread uses all members above
};

}  // namespace

absl::StatusOr<std::unique_ptr<Watcher>> Watcher::Start(const WatcherLimits& limits,
                                                        const Clock& clock, Log& log) {
  CW_ASSIGN_OR_RETURN(Inotify inotify, Inotify::Open());
  fs::Fd wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake.ok()) {
    return absl::ResourceExhaustedError("eventfd: no file descriptor left");
  }
  return std::make_unique<InotifyWatcher>(limits, clock, log, std::move(inotify), std::move(wake));
}

}  // namespace cachewarm::agent

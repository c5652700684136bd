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

#include "agent/evidence/inotify.h"
#include "agent/evidence/own_reads.h"
#include "agent/evidence/pending_events.h"
#include "agent/evidence/tree_scan.h"
#include "agent/evidence/watched_place.h"
#include "fmt/format.h"
#include "lib/base/status.h"

namespace cachewarm::agent {
namespace {

// A scan reads the kernel's queue once per so many directories. Each raises about four events, and
// the queue holds 16,384 by default.
constexpr uint64_t kScannedPerRead = 256;
constexpr size_t kPendingMax = 100'000;
constexpr size_t kHandledPerTurn = 64;  // events of files until other threads get a turn
// Longer paths are in no bundle (lib/bundle/policy.h).
constexpr size_t kPathBytesMax = 1024;
constexpr Duration kPartialPause(60'000);  // before a partially watched tree is scanned again
constexpr Duration kPauseMin(1000);
constexpr Duration kMaintenance(60'000);
constexpr Duration kCollectMax(10'000);
constexpr int kDuePollMs = 1000;
// Engines open files in bursts, and one wake-up costs as much as the events of several files.
constexpr int kBatchMs = 5;  // pause before the queue is read

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
    const auto lock = Lock();
    if (trees_.contains(tree.generation)) {
      return absl::OkStatus();
    }
    const EventLog::Limits limits{.events_max = static_cast<size_t>(limits_.events_max),
                                  .paths_max = static_cast<size_t>(limits_.paths_max),
                                  .keep = limits_.keep};
    auto added = std::make_unique<Tree>(tree, std::move(root), limits, limits_.budget,
                                        tree.fresh ? WallTime{} : clock_.Now());
    ScanWhole(*trees_.emplace(tree.generation, std::move(added)).first->second);
    Wake();  // the watcher thread handles events that were read during the scan
    return absl::OkStatus();
  }

  void RemoveTree(std::string_view generation) override {
    const auto lock = Lock();
    const auto found = trees_.find(generation);
    if (found != trees_.end()) {
      ForgetPlaces([&](const Place& place) { return place.tree == found->second.get(); });
      trees_.erase(found);
    }
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
    const auto lock = Lock();
    return static_cast<int>(places_.size());
  }

  int events() const override {
    const auto lock = Lock();
    size_t sum = 0;
    for (const auto& [generation, tree] : trees_) {
      sum += tree->log.size();
    }
    return static_cast<int>(sum);
  }

  int overflows() const override {
    const auto lock = Lock();
    return overflows_;
  }

 private:
  void Wake() const {
    const uint64_t one = 1;
    static_cast<void>(!::write(wake_.get(), &one, sizeof(one)));
  }

  // The watcher thread locks again within nanoseconds, so a plain lock could wait for as long as
  // events arrive. A caller that waits here keeps LetOthersIn() from overtaking it.
  std::unique_lock<std::mutex> Lock() const {
    const std::lock_guard turn(turn_);
    return std::unique_lock(mutex_);
  }
  void LetOthersIn(std::unique_lock<std::mutex>& lock) const {
    lock.unlock();
    lock = Lock();
  }

  void Loop(std::stop_token stop) {
    int timeout_ms = kDuePollMs;
    while (!stop.stop_requested()) {
      pollfd waiting[] = {{.fd = inotify_.fd(), .events = POLLIN, .revents = 0},
                          {.fd = wake_.get(), .events = POLLIN, .revents = 0}};
      ::poll(waiting, 2, timeout_ms);
      if (waiting[0].revents != 0) {
        ::poll(&waiting[1], 1, kBatchMs);  // a caller that waits for the events ends the pause
      }
      uint64_t count = 0;
      static_cast<void>(!::read(wake_.get(), &count, sizeof(count)));
      const OwnReadScopes::Ended ended = own_reads_.EndedScopes();
      auto lock = Lock();
      const uint64_t requested = requested_;
      ReadQueue();
      HandlePending(lock, stop);
      RunDueScans(lock);
      DropOldEvents();
      if (is_overflowed_ || !pending_.empty()) {
        Wake();  // engines wrote meanwhile
      }
      own_reads_.Forget(ended);
      completed_ = requested;
      drained_.notify_all();
      timeout_ms = NeedsAnyScan() ? kDuePollMs : static_cast<int>(kMaintenance.count());
    }
    const auto lock = Lock();
    stopped_ = true;
    drained_.notify_all();
  }

  bool NeedsAnyScan() const {
    return std::any_of(trees_.begin(), trees_.end(),
                       [](const auto& each) { return each.second->needs_scan; });
  }

  template <typename Wanted>
  EventRecord Collect(WallTime begin, WallTime end, const Wanted& wanted) {
    auto lock = Lock();
    const uint64_t ticket = ++requested_;
    Wake();
    const bool is_drained = drained_.wait_for(
        lock, kCollectMax, [this, ticket] { return stopped_ || completed_ >= ticket; });
    EventRecord record;
    bool any = false;
    for (const auto& [generation, tree] : trees_) {
      if (wanted(tree->tree)) {
        any = true;
        tree->log.Read(begin, end, record);
        record.complete = record.complete && !tree->partial && !tree->needs_scan;
      }
    }
    record.complete = record.complete && any && is_drained && !stopped_;
    SortByTime(record);
    return record;
  }

  // Reads the events that the kernel has queued. Drops those that need no action: about removed
  // watches and about directories that were only opened or listed, for example by a scan.
  void ReadQueue() {
    const WallTime now = clock_.Now();
    inotify_.Drain([this, now](const Inotify::Event& event) {
      constexpr uint32_t kRemoved = IN_IGNORED | IN_UNMOUNT;
      if ((event.mask & IN_Q_OVERFLOW) != 0) {
        NoteOverflow();
        return;
      }
      const auto place = places_.find(event.watch);
      if (place == places_.end()) {
        return;
      }
      place->second.tree->budget.SpendEvent();
      const bool is_of_directory = (event.mask & IN_ISDIR) != 0 || event.name.empty();
      if (is_of_directory && (event.mask & (IN_CREATE | IN_MOVED_TO | kRemoved)) == 0) {
        return;
      }
      if (!pending_.Add(event, now)) {
        NoteOverflow();
      }
    });
  }

  // Scans and removals of watches raise events themselves. Unless these are read in time, they fill
  // the kernel's queue, and the scan after that overflow fills it again.
  void ReadQueueSometimes() {
    if (++touched_ % kScannedPerRead == 0) {
      ReadQueue();
    }
  }

  // Handles the pending events, and then an overflow. One pass: further ones may arrive meanwhile,
  // as long as engines write.
  void HandlePending(std::unique_lock<std::mutex>& lock, const std::stop_token& stop) {
    size_t handled = 0;
    for (const PendingEvents::Event& event : pending_.Take()) {
      if (stop.stop_requested()) {
        return;
      }
      Handle(event);
      if ((event.mask & IN_ISDIR) != 0 || ++handled % kHandledPerTurn == 0) {
        LetOthersIn(lock);
      }
    }
    if (std::exchange(is_overflowed_, false)) {
      Overflow(clock_.Now());
    }
  }

  void NoteOverflow() {
    overflows_ += is_overflowed_ ? 0 : 1;
    is_overflowed_ = true;
  }

  void Handle(const PendingEvents::Event& event) {
    const auto found = places_.find(event.watch);
    if (found == places_.end()) {
      return;
    }
    Tree& tree = *found->second.tree;
    if ((event.mask & (IN_IGNORED | IN_UNMOUNT)) != 0) {
      ErasePlace(found);
      return;
    }
    if (event.name.empty()) {
      return;  // the event is about the watched directory itself
    }
    if (tree.budget.NamesLeft(clock_.Monotonic()) == 0) {
      StopWatching(tree);
      return;
    }
    std::string path = PathIn(found->second, event.name);
    if ((event.mask & IN_ISDIR) == 0) {
      Record(tree, std::move(path), event.mask, event.time);
    } else if ((event.mask & IN_CREATE) != 0) {
      Scan(tree, path, FileEvent{.type = FileEventType::kCreated, .time = event.time, .path = {}});
    } else if ((event.mask & IN_MOVED_TO) != 0) {
      Scan(tree, path,
           FileEvent{.type = FileEventType::kDirectoryIn, .time = event.time, .path = {}});
    }
  }

  // Records one event for each bit of `mask`: inotify(7) does not guarantee that only one is set.
  void Record(Tree& tree, std::string path, uint32_t mask, WallTime now) {
    static constexpr std::pair<uint32_t, FileEventType> kTypes[] = {
        {IN_CREATE, FileEventType::kCreated},      {IN_MOVED_TO, FileEventType::kMovedTo},
        {IN_OPEN, FileEventType::kOpened},         {IN_CLOSE_NOWRITE, FileEventType::kRead},
        {IN_CLOSE_WRITE, FileEventType::kWritten},
    };
    FileEvent event{.time = now, .path = std::move(path)};
    for (const auto& [bit, type] : kTypes) {
      if ((mask & bit) == 0) {
        continue;
      }
      event.type = type;
      if (type == FileEventType::kWritten && !IsNoise(event.path)) {
        event.mtime = ModifiedAt(tree, event.path).value_or(now);
      }
      // Most events are about known paths, and a look-up is cheaper than to match all patterns.
      if (!own_reads_.Consume(tree.tree.generation, event) && !tree.log.AddIfKnown(event) &&
          !IsNoise(event.path)) {
        tree.log.Add(event);
      }
    }
  }

  // Watches every directory of the tree.
  void ScanWhole(Tree& tree) {
    tree.needs_scan = false;
    tree.partial = false;
    ++tree.whole_scans;
    const int64_t names = Scan(tree, "", std::nullopt);
    if (const Duration pause = tree.budget.PauseAfter(names); pause >= kPauseMin) {
      tree.scan_at = std::max(tree.scan_at, clock_.Monotonic() + pause);
    }
    if (tree.partial) {
      return;
    }
    // The kernel's event about their removal may have been lost.
    ForgetPlaces([&tree](const Place& place) {
      return place.tree == &tree && place.whole_scan != tree.whole_scans;
    });
    if (std::exchange(tree.reported, false)) {
      log_.Info("tree completely watched again", {{"generation", tree.tree.generation}});
    }
  }

  // Watches `path` and everything below it, and returns the number of visited names. Files that
  // were created before their directory was watched have raised no event. Therefore, if `found` is
  // set, that event is recorded for each existing file; if not, nothing is recorded.
  int64_t Scan(Tree& tree, const std::string& path, const std::optional<FileEvent>& found) {
    ScanLimits limits{.depth_max = limits_.depth_max};
    const MonoTime now = clock_.Monotonic();
    limits.entries_max = std::min(limits.entries_max, tree.budget.NamesLeft(now));
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
    const ScanResult scanned = ScanTree(tree.root, path, limits, visitor);
    tree.budget.SpendNames(scanned.names);
    if (tree.budget.NamesLeft(now) == 0) {
      StopWatching(tree);
    } else if (!scanned.status.ok()) {
      MarkPartial(tree, scanned.status);
    }
    return scanned.names;
  }

  bool WatchOne(Tree& tree, std::string_view path, int fd) {
    ReadQueueSometimes();
    if (path.size() > kPathBytesMax) {
      return false;
    }
    const absl::StatusOr<int> watch = inotify_.Watch(fd);
    if (!watch.ok()) {
      MarkPartial(tree, watch.status());
      return false;
    }
    // A renamed directory keeps its watch number; only its path changes.
    auto at = places_.find(*watch);
    if (at == places_.end()) {
      if (tree.directories >= limits_.directories_per_tree ||
          places_.size() >= static_cast<size_t>(limits_.directories_max) ||
          path_bytes_ + static_cast<int64_t>(path.size()) > limits_.directory_bytes_max) {
        inotify_.Forget(*watch);
        MarkPartial(tree, absl::ResourceExhaustedError("too many directories to watch"));
        return false;
      }
      at = places_.try_emplace(*watch).first;
      ++tree.directories;
    }
    path_bytes_ += static_cast<int64_t>(path.size()) - std::ssize(at->second.path);
    at->second = {.tree = &tree, .path = std::string(path), .whole_scan = tree.whole_scans};
    return true;
  }

  std::unordered_map<int, Place>::iterator ErasePlace(
      std::unordered_map<int, Place>::iterator place) {
    --place->second.tree->directories;
    path_bytes_ -= std::ssize(place->second.path);
    return places_.erase(place);
  }

  template <typename Unwanted>
  void ForgetPlaces(const Unwanted& is_unwanted) {
    for (auto place = places_.begin(); place != places_.end();) {
      if (!is_unwanted(place->second)) {
        ++place;
        continue;
      }
      inotify_.Forget(place->first);
      place = ErasePlace(place);
      ReadQueueSometimes();
    }
  }

  // Ends the watches of a tree that exceeds its budget, until the budget is renewed.
  void StopWatching(Tree& tree) {
    ForgetPlaces([&tree](const Place& place) { return place.tree == &tree; });
    MarkPartial(tree, absl::ResourceExhaustedError(fmt::format(
                          "its pods changed more than {} names in {}", limits_.budget.names_max,
                          FormatDuration(limits_.budget.window))));
    tree.scan_at = std::max(tree.scan_at, tree.budget.RenewsAt());
  }

  // Marks the records as incomplete until now, and requests scans for directories whose creation
  // was lost.
  void Overflow(WallTime now) {
    log_.Warning("file events lost: inotify queue overflow",
                 {{"trees", static_cast<int64_t>(trees_.size())}});
    for (const auto& [generation, tree] : trees_) {
      tree->log.Lose(now);
      tree->needs_scan = true;
    }
  }

  void RunDueScans(std::unique_lock<std::mutex>& lock) {
    const MonoTime now = clock_.Monotonic();
    std::vector<std::string> due;
    for (const auto& [generation, tree] : trees_) {
      if (tree->needs_scan && tree->scan_at <= now && tree->budget.IsHalfLeft(now)) {
        due.push_back(generation);
      }
    }
    for (const std::string& generation : due) {
      if (const auto found = trees_.find(generation); found != trees_.end()) {
        ScanWhole(*found->second);
        found->second->log.Lose(clock_.Now());
      }
      LetOthersIn(lock);
    }
  }

  void DropOldEvents() {
    const MonoTime now = clock_.Monotonic();
    if (now - maintained_at_ < kMaintenance) {
      return;
    }
    maintained_at_ = now;
    for (const auto& [generation, tree] : trees_) {
      tree->log.DropOld(clock_.Now());
    }
  }

  void MarkPartial(Tree& tree, const absl::Status& why) {
    if (!std::exchange(tree.reported, true)) {
      log_.Warning("tree only partially watched; pod starts in it will be reported as unknown",
                   {{"generation", tree.tree.generation}, {"err", Message(why)}});
    }
    tree.partial = true;
    tree.needs_scan = true;
    tree.scan_at = std::max(tree.scan_at, clock_.Monotonic() + kPartialPause);
  }

  const WatcherLimits limits_;
  const Clock& clock_;
  Log& log_;
  Inotify inotify_;
  const fs::Fd wake_;
  OwnReadScopes own_reads_;

  mutable std::mutex turn_;  // locked while a thread waits for mutex_
  mutable std::mutex mutex_;
  std::condition_variable drained_;
  std::map<std::string, std::unique_ptr<Tree>, std::less<>> trees_;
  std::unordered_map<int, Place> places_;  // by inotify watch number
  uint64_t requested_ = 0;
  uint64_t completed_ = 0;
  int overflows_ = 0;
  bool is_overflowed_ = false;  // events were lost, and Overflow() has not been called yet
  PendingEvents pending_{kPendingMax};
  uint64_t touched_ = 0;    // number of watches that were added or removed
  int64_t path_bytes_ = 0;  // of all places
  MonoTime maintained_at_{};
  bool stopped_ = false;
  std::jthread thread_;  // last, because the thread uses all members above
};

}  // namespace

absl::StatusOr<std::unique_ptr<Watcher>> Watcher::Start(const WatcherLimits& limits,
                                                        const Clock& clock, Log& log) {
  constexpr int64_t kShare = 4;
  WatcherLimits own = limits;
  own.directories_max = static_cast<int>(std::min<int64_t>(
      limits.directories_max, Inotify::WatchesMax(limits.max_watches_file) / kShare));
  CW_ASSIGN_OR_RETURN(Inotify inotify, Inotify::Open());
  fs::Fd wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake.ok()) {
    return absl::ResourceExhaustedError("eventfd: no file descriptor left");
  }
  return std::make_unique<InotifyWatcher>(own, clock, log, std::move(inotify), std::move(wake));
}

}  // namespace cachewarm::agent

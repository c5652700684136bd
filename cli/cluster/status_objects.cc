// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/status_objects.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "cli/cluster/list_objects.h"
#include "fmt/format.h"
#include "lib/base/log.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/kube/core/object.h"
#include "lib/kube/core/request.h"
#include "lib/kube/runtime/reflector.h"

namespace cachewarm::cli {
namespace {

using codec::Json;

// Time after which a watch without changes prints its notes.
constexpr std::chrono::milliseconds kNotePeriod{500};

void AddDecoded(const Json& object, const kube::Resource& resource, StatusObjects& to) {
  absl::Status status;
  if (resource == kube::kCacheWarmups) {
    auto warmup = api::DecodeCacheWarmup(object);
    status = warmup.status();
    if (warmup.ok()) {
      to.warmups.push_back(*std::move(warmup));
    }
  } else {
    auto node = api::DecodeNodeCache(object);
    status = node.status();
    if (node.ok()) {
      to.nodes.push_back(*std::move(node));
    }
  }
  if (!status.ok()) {
    to.notes.push_back(fmt::format("{} {} cannot be read: {}", resource.kind,
                                   kube::NameOf(object).ToString(), Message(status)));
  }
}

void SortByName(StatusObjects& objects) {
  std::sort(objects.warmups.begin(), objects.warmups.end(), [](const auto& a, const auto& b) {
    return std::tie(a.ns, a.name) < std::tie(b.ns, b.name);
  });
  std::sort(objects.nodes.begin(), objects.nodes.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

absl::Status ListInto(kube::Client& client, const kube::Resource& resource, const std::string& ns,
                      const Clock& clock, StatusObjects& to, std::stop_token stop) {
  StatusObjects listed;
  const ListedObjects handler{.on_object =
                                  [&](const Json& object) {
                                    AddDecoded(object, resource, listed);
                                    return absl::OkStatus();
                                  },
                              .on_restart = [&listed] { listed = StatusObjects(); }};
  CW_RETURN_IF_ERROR(ForEachObject(client, resource, ns, clock, handler, std::move(stop)));
  std::move(listed.warmups.begin(), listed.warmups.end(), std::back_inserter(to.warmups));
  std::move(listed.nodes.begin(), listed.nodes.end(), std::back_inserter(to.nodes));
  std::move(listed.notes.begin(), listed.notes.end(), std::back_inserter(to.notes));
  return absl::OkStatus();
}

// Keeps the warnings of reflectors until the thread that prints takes them.
class QueuedLog : public Log {
 public:
  void Write(LogLevel level, std::string_view msg, LogFields fields) override {
    if (level < LogLevel::kWarning) {
      return;
    }
    std::string error;
    for (const LogField& field : fields) {
      const auto* text = std::get_if<std::string>(&field.value);
      error = field.name == "err" && text != nullptr ? fmt::format(": {}", *text) : error;
    }
    std::lock_guard lock(mutex_);
    notes_.push_back(fmt::format("{}{}", msg, error));
  }
  std::vector<std::string> Take() {
    std::lock_guard lock(mutex_);
    return std::exchange(notes_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> notes_;
};

// One call of WatchStatusObjects().
class StatusWatch {
 public:
  StatusWatch(kube::Client& client, const Clock& clock, const StatusQuery& query,
              const StatusWatcher& watcher)
      : watcher_(watcher),
        runtime_{.client = client, .clock = clock, .random = SystemRandom(), .log = log_},
        warmups_(runtime_,
                 {.resource = kube::kCacheWarmups,
                  .ns = query.ns,
                  .field_selector = query.warmup.empty() ? "" : "metadata.name=" + query.warmup}) {
    warmups_.OnChange([this](const kube::Change&) { NoteChange(); });
    if (query.with_nodes) {
      nodes_.emplace(runtime_, kube::ReflectorOptions{.resource = kube::kNodeCaches, .ns = ""});
      nodes_->OnChange([this](const kube::Change&) { NoteChange(); });
    }
  }

  absl::Status Run(std::stop_token stop) {
    const std::jthread warmups([this](std::stop_token ending) { warmups_.Run(ending); });
    std::optional<std::jthread> nodes;
    if (nodes_.has_value()) {
      nodes.emplace([this](std::stop_token ending) { nodes_->Run(ending); });
    }
    while (!stop.stop_requested()) {
      const bool changed = AwaitChange(stop);
      PrintNotes();
      if (changed && !stop.stop_requested()) {
        CW_RETURN_IF_ERROR(watcher_.on_change(Objects()));
      }
    }
    return absl::OkStatus();
  }

 private:
  void NoteChange() {
    {
      std::lock_guard lock(mutex_);
      changed_ = true;
    }
    changes_.notify_all();
  }

  // Waits for a change, at most kNotePeriod. Returns false if there was none, or if a list is not
  // complete yet: the change is then reported with the complete list.
  bool AwaitChange(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changes_.wait_for(lock, stop, kNotePeriod, [this] { return changed_; });
    const bool synced =
        warmups_.store().HasSynced() && (!nodes_.has_value() || nodes_->store().HasSynced());
    return synced && std::exchange(changed_, false);
  }

  StatusObjects Objects() const {
    StatusObjects objects;
    for (const kube::CachedObjectPtr& object : warmups_.store().List()) {
      AddDecoded(*object->Unpack(), kube::kCacheWarmups, objects);
    }
    if (nodes_.has_value()) {
      for (const kube::CachedObjectPtr& object : nodes_->store().List()) {
        AddDecoded(*object->Unpack(), kube::kNodeCaches, objects);
      }
    }
    SortByName(objects);
    return objects;
  }

  void PrintNotes() {
    for (const std::string& note : log_.Take()) {
      if (note != last_note_) {
        watcher_.on_note(note);
      }
      last_note_ = note;
    }
  }

  const StatusWatcher& watcher_;
  QueuedLog log_;
  std::string last_note_;
  kube::Runtime runtime_;
  kube::Reflector warmups_;
  std::optional<kube::Reflector> nodes_;
  std::mutex mutex_;
  std::condition_variable_any changes_;
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<StatusObjects> ReadStatusObjects(kube::Client& client, const Clock& clock,
                                                const StatusQuery& query, std::stop_token stop) {
  StatusObjects objects;
  if (query.warmup.empty()) {
    CW_RETURN_IF_ERROR(ListInto(client, kube::kCacheWarmups, query.ns, clock, objects, stop));
  } else {
    CW_ASSIGN_OR_RETURN(const Json object,
                        client.Do(Get(kube::kCacheWarmups, {query.ns, query.warmup}), stop));
    CW_ASSIGN_OR_RETURN(api::CacheWarmup warmup, api::DecodeCacheWarmup(object));
    objects.warmups.push_back(std::move(warmup));
  }
  if (query.with_nodes) {
    const absl::Status listed = ListInto(client, kube::kNodeCaches, "", clock, objects, stop);
    if (absl::IsCancelled(listed)) {
      return listed;
    }
    if (!listed.ok()) {
      objects.notes.push_back(fmt::format("nodes are not shown: {}", Message(listed)));
    }
  }
  SortByName(objects);
  return objects;
}

absl::Status WatchStatusObjects(kube::Client& client, const Clock& clock, const StatusQuery& query,
                                const StatusWatcher& watcher, std::stop_token stop) {
  return StatusWatch(client, clock, query, watcher).Run(std::move(stop));
}

}  // namespace cachewarm::cli

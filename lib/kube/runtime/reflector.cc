// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/reflector.h"

#include <utility>

#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::kube {

using codec::Json;

namespace {

Watcher NewWatcher(const ReflectorOptions& options) {
  const BackoffPolicy after_failures{
      .first = Duration(800), .most = options.backoff_max, .factor = 2.0, .jitter = 0.5};
  return Watcher(after_failures, options.page_items);
}

}  // namespace

Reflector::Reflector(const Runtime& runtime, ReflectorOptions options)
    : runtime_(runtime),
      options_(std::move(options)),
      store_(options_.index, options_.table),
      watcher_(NewWatcher(options_)) {}

void Reflector::OnChange(Handler handler) {
  handlers_.push_back(std::move(handler));
}

void Reflector::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    Execute(watcher_.Next(runtime_.clock.Monotonic(), runtime_.random()), stop);
  }
}

void Reflector::Forget() {
  watcher_ = NewWatcher(options_);
  listed_.clear();
  for (const CachedChange& change : store_.Replace({})) {
    Report(change);
  }
}

void Reflector::Execute(const WatcherAction& action, std::stop_token stop) {
  switch (action.type) {
    case WatcherActionType::kList:
      return ListPage(action, stop);
    case WatcherActionType::kWatch:
      return WatchFrom(action, stop);
    case WatcherActionType::kSleep:
      SleepFor(runtime_.clock, action.delay, stop);
      return;
  }
}

void Reflector::ListPage(const WatcherAction& action, std::stop_token stop) {
  if (watcher_.IsFirstPage()) {
    listed_.clear();
  }
  const auto on_item = [this](Json item) {
    Trim(item);
    listed_.push_back(store_.Pack(item));
  };
  absl::StatusOr<Json> page =
      runtime_.client.DoList(List(options_.resource, {.ns = options_.ns,
                                                      .label_selector = options_.label_selector,
                                                      .field_selector = options_.field_selector,
                                                      .limit = action.page_items,
                                                      .continue_token = action.continue_token,
                                                      .resource_version = {}}),
                             on_item, stop);
  // Go writes an empty list as null.
  const bool has_items = page.ok() && page->is_object() && page->contains("items") &&
                         ((*page)["items"].is_array() || (*page)["items"].is_null());
  if (!has_items) {
    const absl::Status status =
        page.ok() ? absl::InvalidArgumentError("the answer has no list of items") : page.status();
    LogFailure(status, "list");
    watcher_.OnListFailure(status, runtime_.clock.Monotonic());
    return;
  }
  if (watcher_.OnPage(codec::TextAt(*page, {"metadata", "continue"}),
                      codec::TextAt(*page, {"metadata", "resourceVersion"}))) {
    for (const CachedChange& change : store_.Replace(std::exchange(listed_, {}))) {
      Report(change);
    }
  }
}

void Reflector::WatchFrom(const WatcherAction& action, std::stop_token stop) {
  const auto on_event = [this](const WatchEvent& event) {
    watcher_.OnProgress(ResourceVersionOf(*event.object));
    if (event.type == WatchEventType::kDeleted) {
      Report(store_.Remove(NameOf(*event.object)));
    } else if (event.type != WatchEventType::kBookmark) {
      Trim(*event.object);
      Report(store_.Put(*event.object));
    }
    return absl::OkStatus();
  };
  const absl::Status status = runtime_.client.Watch(
      kube::Watch(options_.resource, {.ns = options_.ns,
                                      .label_selector = options_.label_selector,
                                      .field_selector = options_.field_selector,
                                      .resource_version = action.resource_version}),
      on_event, stop);
  if (stop.stop_requested()) {
    return;
  }
  LogFailure(status, "watch");
  watcher_.OnWatchEnd(status, runtime_.clock.Monotonic());
}

void Reflector::Trim(Json& object) const {
  if (object.is_object() && object.contains("metadata") && object["metadata"].is_object()) {
    object["metadata"].erase("managedFields");
  }
  // Set apiVersion and kind, which objects of a watch have and items of a list lack, so that
  // readers see no difference.
  if (object.is_object()) {
    object["apiVersion"] = options_.resource.ApiVersion();
    object["kind"] = options_.resource.kind;
  }
  if (options_.project) {
    options_.project(object);
  }
}

void Reflector::Report(const CachedChange& kept) const {
  if (handlers_.empty() || (kept.before == nullptr && kept.after == nullptr)) {
    return;  // deletion of an object that the store never had
  }
  const Change change = kept.Unpack();
  for (const Handler& handler : handlers_) {
    handler(change);
  }
}

void Reflector::LogFailure(const absl::Status& status, std::string_view doing) const {
  if (status.ok() || absl::IsCancelled(status)) {
    return;
  }
  const LogFields fields = {
      {"resource", options_.resource.plural}, {"verb", doing}, {"err", Message(status)}};
  if (absl::IsOutOfRange(status)) {
    runtime_.log.Debug("resource version is no longer available, listing again", fields);
  } else if (absl::IsDeadlineExceeded(status) && doing == "watch") {
    // Not a failure: bookmarks are not guaranteed, so a kind without changes may be silent this
    // long.
    runtime_.log.Debug("watch was silent for too long, starting it again", fields);
  } else {
    runtime_.log.Warning("list or watch failed", fields);
  }
}

bool AwaitSynced(const std::vector<const Store*>& stores, const Clock& clock, Duration limit,
                 std::stop_token stop) {
  const MonoTime deadline = clock.Monotonic() + limit;
  for (const Store* store : stores) {
    if (!store->AwaitSynced(clock, deadline, stop)) {
      return false;
    }
  }
  return !stop.stop_requested();
}

}  // namespace cachewarm::kube

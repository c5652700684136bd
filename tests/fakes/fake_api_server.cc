// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/fake_api_server.h"

#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/kube_objects.h"
#include "tests/fakes/kube_route.h"
#include "tests/fakes/kube_selector.h"

namespace cachewarm::fakes {
namespace {

using codec::Json;
using kube::WatchEvent;
using kube::WatchEventType;

std::string QueryOf(const KubeRoute& route, const std::string& name) {
  const auto found = route.query.find(name);
  return found == route.query.end() ? std::string() : found->second;
}

int64_t NumberOf(const std::string& text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

WatchEvent EventOf(WatchEventType type, const kube::Object& object, int64_t version) {
  WatchEvent event{.type = type, .object = std::make_shared<Json>(*object)};
  if (type == WatchEventType::kDeleted) {
    (*event.object)["metadata"]["resourceVersion"] = std::to_string(version);
  }
  return event;
}

WatchEvent BookmarkOf(const kube::Resource& resource, int64_t version) {
  return {.type = WatchEventType::kBookmark,
          .object = std::make_shared<Json>(
              Json{{"apiVersion", resource.ApiVersion()},
                   {"kind", resource.kind},
                   {"metadata", {{"resourceVersion", std::to_string(version)}}}})};
}

bool IsSelected(const KubeRoute& route, const KubeSelector& selector, const kube::Object& object) {
  return object != nullptr && (route.ns.empty() || kube::NameOf(*object).ns == route.ns) &&
         selector.Matches(*object).value_or(false);
}

// Translates a history entry for one watch: an object that leaves the selector is deleted.
std::optional<WatchEvent> Translate(const KubeObjects::Entry& entry, const KubeRoute& route,
                                    const KubeSelector& selector) {
  const bool was = IsSelected(route, selector, entry.before);
  const bool is = IsSelected(route, selector, entry.after);
  if (!was && !is) {
    return std::nullopt;
  }
  if (!is) {
    return EventOf(WatchEventType::kDeleted, entry.before, entry.version);
  }
  return EventOf(was ? WatchEventType::kModified : WatchEventType::kAdded, entry.after,
                 entry.version);
}

}  // namespace

struct FakeApiServer::State {
  explicit State(const Clock& c) : clock(c), objects(c) {}

  const Clock& clock;
  std::mutex mutex;
  std::condition_variable_any wake;
  KubeObjects objects;
  Interceptor interceptor;
  std::set<std::string> unserved;  // by kind
  std::vector<std::string> requests;
  std::map<std::string, std::string> logs;  // by "ns/pod/container"
  int watches = 0;
  int64_t breaks = 0;
  absl::Status break_status;
  int64_t bookmarks = 0;
};

FakeApiServer::FakeApiServer(const Clock& clock) : state_(std::make_unique<State>(clock)) {}
FakeApiServer::~FakeApiServer() = default;

absl::Status FakeApiServer::Admit(const kube::Request& request, const KubeRoute& route,
                                  std::stop_token stop) {
  if (stop.stop_requested()) {
    return absl::CancelledError("stopped");
  }
  Interceptor interceptor;
  {
    std::lock_guard lock(state_->mutex);
    const kube::ObjectName name{.ns = route.ns, .name = route.name};
    state_->requests.push_back(
        fmt::format("{} {} {}", request.verb, request.resource, name.ToString()));
    interceptor = state_->interceptor;
  }
  return interceptor ? interceptor(request) : absl::OkStatus();
}

void FakeApiServer::Serve(const kube::Resource& resource, bool served) {
  std::lock_guard lock(state_->mutex);
  if (served) {
    state_->unserved.erase(std::string(resource.kind));
  } else {
    state_->unserved.insert(std::string(resource.kind));
  }
}

// The kinds of "/apis/<group>/<version>"; nullopt for any other path and a group without kinds.
std::optional<Json> FakeApiServer::Discover(const kube::Request& request) const {
  Json kinds = Json::array();
  std::string api_version;
  std::lock_guard lock(state_->mutex);
  for (const kube::Resource& resource : kube::KnownResources()) {
    if (request.path == "/apis/" + resource.ApiVersion() &&
        !state_->unserved.contains(std::string(resource.kind))) {
      api_version = resource.ApiVersion();
      kinds.push_back({{"name", resource.plural},
                       {"kind", resource.kind},
                       {"namespaced", resource.namespaced}});
    }
  }
  if (kinds.empty()) {
    return std::nullopt;
  }
  return Json{
      {"kind", "APIResourceList"}, {"groupVersion", api_version}, {"resources", std::move(kinds)}};
}

std::optional<KubeRoute> FakeApiServer::ServedRoute(const kube::Request& request) const {
  std::optional<KubeRoute> route = RouteOf(request);
  std::lock_guard lock(state_->mutex);
  if (route.has_value() && state_->unserved.contains(std::string(route->resource->kind))) {
    route.reset();
  }
  return route;
}

absl::StatusOr<Json> FakeApiServer::Do(const kube::Request& request, std::stop_token stop) {
  const std::optional<KubeRoute> route = ServedRoute(request);
  CW_RETURN_IF_ERROR(Admit(request, route.value_or(KubeRoute()), stop));
  if (auto kinds = Discover(request); kinds.has_value()) {
    return *std::move(kinds);
  }
  if (!route.has_value()) {
    return KubeError(404, "NotFound", "the server could not find the requested resource");
  }
  std::lock_guard lock(state_->mutex);
  if (request.method == "GET") {
    return route->name.empty() ? state_->objects.List(*route) : state_->objects.Get(*route);
  }
  absl::StatusOr<Json> answer = state_->objects.Write(request, *route);
  state_->wake.notify_all();
  return answer;
}

absl::StatusOr<std::string> FakeApiServer::DoText(const kube::Request& request,
                                                  std::stop_token stop) {
  const std::optional<KubeRoute> route = ServedRoute(request);
  CW_RETURN_IF_ERROR(Admit(request, route.value_or(KubeRoute()), stop));
  std::lock_guard lock(state_->mutex);
  if (!route.has_value() || route->subresource != "log" || !state_->objects.Get(*route).ok()) {
    return KubeError(404, "NotFound", "the server could not find the requested resource");
  }
  const auto log = state_->logs.find(
      fmt::format("{}/{}/{}", route->ns, route->name, QueryOf(*route, "container")));
  if (log == state_->logs.end()) {
    return KubeError(404, "NotFound", "the container has no log");
  }
  return log->second.substr(0, static_cast<size_t>(NumberOf(QueryOf(*route, "limitBytes"))));
}

absl::Status FakeApiServer::Watch(const kube::Request& request,
                                  const kube::WatchEventHandler& on_event, std::stop_token stop) {
  const std::optional<KubeRoute> route = ServedRoute(request);
  CW_RETURN_IF_ERROR(Admit(request, route.value_or(KubeRoute()), stop));
  if (!route.has_value()) {
    return KubeError(404, "NotFound", "the server could not find the requested resource");
  }
  const KubeSelector selector{.labels = QueryOf(*route, "labelSelector"),
                              .fields = QueryOf(*route, "fieldSelector")};
  CW_RETURN_IF_ERROR(selector.Matches(Json::object()).status());
  std::unique_lock lock(state_->mutex);
  int64_t seen = NumberOf(QueryOf(*route, "resourceVersion"));
  std::vector<WatchEvent> first;
  if (seen == 0) {
    for (const kube::Object& object : state_->objects.All(*route->resource)) {
      if (IsSelected(*route, selector, object)) {
        first.push_back(EventOf(WatchEventType::kAdded, object, 0));
      }
    }
    seen = state_->objects.version();
  }
  if (seen < state_->objects.oldest()) {
    return KubeError(410, "Expired", fmt::format("too old resource version: {}", seen));
  }
  ++state_->watches;
  const int64_t breaks = state_->breaks;
  const int64_t bookmarks = state_->bookmarks;
  lock.unlock();
  absl::Status status;
  for (WatchEvent& event : first) {
    status.Update(on_event(std::move(event)));
  }
  if (status.ok()) {
    status = Pump(*route,
                  {.on_event = on_event,
                   .selector = selector,
                   .seen = seen,
                   .breaks = breaks,
                   .bookmarks = bookmarks},
                  stop);
  }
  lock.lock();
  --state_->watches;
  return status;
}

absl::Status FakeApiServer::Pump(const KubeRoute& route, const Listener& listener,
                                 std::stop_token stop) {
  const int64_t seconds = NumberOf(QueryOf(route, "timeoutSeconds"));
  const MonoTime end =
      state_->clock.Monotonic() + std::chrono::seconds(seconds > 0 ? seconds : 1800);
  int64_t seen = listener.seen;
  int64_t bookmarks = listener.bookmarks;
  std::unique_lock lock(state_->mutex);
  while (!stop.stop_requested()) {
    const bool ends = state_->breaks != listener.breaks;
    if (!ends && seen + 1 < state_->objects.oldest()) {
      return KubeError(410, "Expired", fmt::format("too old resource version: {}", seen));
    }
    std::vector<WatchEvent> events;
    for (const KubeObjects::Entry& entry : state_->objects.history()) {
      if (entry.version > seen && entry.resource == route.resource) {
        if (auto event = Translate(entry, route, listener.selector); event.has_value()) {
          events.push_back(*std::move(event));
        }
      }
    }
    seen = state_->objects.version();
    if (std::exchange(bookmarks, state_->bookmarks) != state_->bookmarks) {
      events.push_back(BookmarkOf(*route.resource, seen));
    }
    if (events.empty()) {
      if (ends) {
        return state_->break_status;
      }
      if (state_->clock.Monotonic() >= end) {
        return absl::OkStatus();
      }
      state_->clock.WaitUntil(lock, state_->wake, end, stop);
      continue;
    }
    lock.unlock();
    for (WatchEvent& event : events) {
      CW_RETURN_IF_ERROR(listener.on_event(std::move(event)));
    }
    lock.lock();
  }
  return absl::CancelledError("stopped");
}

kube::Object FakeApiServer::Put(const kube::Resource& resource, const Json& object) {
  std::lock_guard lock(state_->mutex);
  kube::Object stored = state_->objects.Put(resource, object);
  state_->wake.notify_all();
  return stored;
}

kube::Object FakeApiServer::Find(const kube::Resource& resource,
                                 const kube::ObjectName& name) const {
  std::lock_guard lock(state_->mutex);
  return state_->objects.Find(resource, name);
}

std::vector<kube::Object> FakeApiServer::All(const kube::Resource& resource) const {
  std::lock_guard lock(state_->mutex);
  return state_->objects.All(resource);
}

void FakeApiServer::SetLog(const kube::ObjectName& pod, const std::string& container,
                           std::string text) {
  std::lock_guard lock(state_->mutex);
  state_->logs[pod.ToString() + "/" + container] = std::move(text);
}

void FakeApiServer::Remove(const kube::Resource& resource, const kube::ObjectName& name) {
  std::lock_guard lock(state_->mutex);
  state_->objects.Remove(resource, name);
  state_->wake.notify_all();
}

void FakeApiServer::Edit(const kube::Resource& resource, const kube::ObjectName& name,
                         const std::function<void(Json&)>& edit) {
  std::lock_guard lock(state_->mutex);
  Json object = *state_->objects.Find(resource, name);
  edit(object);
  state_->objects.Put(resource, std::move(object));
  state_->wake.notify_all();
}

void FakeApiServer::Intercept(Interceptor interceptor) {
  std::lock_guard lock(state_->mutex);
  state_->interceptor = std::move(interceptor);
}

void FakeApiServer::OnWrite(WriteHook hook) {
  std::lock_guard lock(state_->mutex);
  state_->objects.set_write_hook(std::move(hook));
}

void FakeApiServer::BreakWatches(const absl::Status& status) {
  std::lock_guard lock(state_->mutex);
  ++state_->breaks;
  state_->break_status = status;
  state_->wake.notify_all();
}

void FakeApiServer::Compact() {
  std::lock_guard lock(state_->mutex);
  state_->objects.Compact();
}

void FakeApiServer::SendBookmarks() {
  std::lock_guard lock(state_->mutex);
  ++state_->bookmarks;
  state_->wake.notify_all();
}

std::vector<std::string> FakeApiServer::Requests() const {
  std::lock_guard lock(state_->mutex);
  return state_->requests;
}

int FakeApiServer::watches() const {
  std::lock_guard lock(state_->mutex);
  return state_->watches;
}

}  // namespace cachewarm::fakes

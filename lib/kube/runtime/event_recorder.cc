// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/event_recorder.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/kube/runtime/event_series.h"
#include "lib/kube/runtime/stop_after.h"

namespace cachewarm::kube {
namespace {

constexpr Duration kNothingDue = std::chrono::hours(1);
constexpr Duration kSendLimit{3'000};
// Time for which events of a namespace are dropped after one was not written within kSendLimit.
constexpr Duration kSlowLasts = std::chrono::minutes(5);

// Returns the namespace in the path of a request for an event.
std::string NamespaceInPath(const Request& request) {
  constexpr std::string_view kBefore = "/namespaces/";
  const size_t ns = request.path.find(kBefore) + kBefore.size();
  return request.path.substr(ns, request.path.find('/', ns) - ns);
}

ObjectName EventNameOf(const Request& patch) {
  // The path ends in "/namespaces/<ns>/events/<name>"; event names need no percent-encoding.
  const size_t name = patch.path.rfind('/');
  const size_t kind = patch.path.rfind('/', name - 1);
  const size_t ns = patch.path.rfind('/', kind - 1);
  return {.ns = patch.path.substr(ns + 1, kind - ns - 1), .name = patch.path.substr(name + 1)};
}

}  // namespace

struct EventRecorder::State {
  State(const Runtime& r, const EventRecorderOptions& o) : runtime(r), options(o), series(o) {}

  void Write(std::stop_token stop);
  std::vector<Request> Collect(const std::deque<Event>& events);
  void Send(const Request& request, std::stop_token stop);
  bool IsSlow(const std::string& ns);
  void CountDropped();

  Runtime runtime;
  const EventRecorderOptions options;
  EventSeries series;                          // used by the writer thread only
  std::map<std::string, MonoTime> slow_since;  // namespace -> time; used by the writer thread only
  std::mutex mutex;
  std::condition_variable_any wake;
  std::condition_variable_any idle;
  std::deque<Event> queue;
  bool busy = false;
  size_t dropped = 0;
};

EventRecorder::EventRecorder(const Runtime& runtime, const EventRecorderOptions& options)
    : state_(std::make_unique<State>(runtime, options)),
      writer_([state = state_.get()](std::stop_token stop) { state->Write(stop); }) {}

EventRecorder::~EventRecorder() = default;

void EventRecorder::Record(Event event) {
  if (event.regarding == nullptr) {
    return;
  }
  std::lock_guard lock(state_->mutex);
  if (state_->queue.size() >= state_->options.queue_max) {
    ++state_->dropped;
    return;
  }
  state_->queue.push_back(std::move(event));
  state_->wake.notify_all();
}

bool EventRecorder::Flush(Duration limit) {
  std::unique_lock lock(state_->mutex);
  const Clock& clock = state_->runtime.clock;
  const MonoTime deadline = clock.Monotonic() + limit;
  while (!state_->queue.empty() || state_->busy) {
    if (clock.Monotonic() >= deadline) {
      return false;
    }
    clock.WaitUntil(lock, state_->idle, deadline, {});
  }
  return true;
}

size_t EventRecorder::dropped() const {
  std::lock_guard lock(state_->mutex);
  return state_->dropped;
}

void EventRecorder::State::Write(std::stop_token stop) {
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    const MonoTime now = runtime.clock.Monotonic();
    const MonoTime due = series.NextDue().value_or(now + kNothingDue);
    if (queue.empty() && due > now) {
      runtime.clock.WaitUntil(lock, wake, due, stop);
      continue;
    }
    const std::deque<Event> events = std::exchange(queue, {});
    busy = true;
    lock.unlock();
    for (const Request& request : Collect(events)) {
      Send(request, stop);
    }
    lock.lock();
    busy = false;
    idle.notify_all();
  }
}

std::vector<Request> EventRecorder::State::Collect(const std::deque<Event>& events) {
  const MonoTime now = runtime.clock.Monotonic();
  std::vector<Request> requests;
  for (const Event& event : events) {
    EventSeries::AddResult result = series.Add(event, now, runtime.clock.Now(), runtime.random());
    if (result.create.has_value()) {
      requests.push_back(*std::move(result.create));
    }
    if (result.is_dropped) {
      std::lock_guard lock(mutex);
      ++dropped;
    }
  }
  for (Request& patch : series.Due(now)) {
    requests.push_back(std::move(patch));
  }
  return requests;
}

bool EventRecorder::State::IsSlow(const std::string& ns) {
  const MonoTime now = runtime.clock.Monotonic();
  std::erase_if(slow_since, [&](const auto& each) { return now - each.second >= kSlowLasts; });
  return slow_since.contains(ns);
}

void EventRecorder::State::CountDropped() {
  std::lock_guard lock(mutex);
  ++dropped;
}

void EventRecorder::State::Send(const Request& request, std::stop_token stop) {
  const std::string ns = NamespaceInPath(request);
  if (IsSlow(ns)) {
    CountDropped();
    return;
  }
  const StopAfter over(runtime.clock, kSendLimit, stop);
  const absl::Status sent = runtime.client.Do(request, over.token()).status();
  if (absl::IsCancelled(sent) && !stop.stop_requested()) {
    slow_since[ns] = runtime.clock.Monotonic();
    CountDropped();
    runtime.log.Warning(
        "event not written in time",
        {{"err", "the events of namespace " + ns + " are dropped for five minutes"}});
    return;
  }
  if (absl::IsNotFound(sent) && request.method == "PATCH") {
    series.Forget(EventNameOf(request));
  } else if (!sent.ok() && !absl::IsCancelled(sent)) {
    runtime.log.Warning("event could not be written", {{"err", Message(sent)}});
  }
}

}  // namespace cachewarm::kube

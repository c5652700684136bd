// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "lib/codec/json_value.h"
#include "lib/kube/client/client.h"
#include "tests/fakes/await.h"
#include "tests/fakes/fake_clock.h"

namespace cachewarm::op::testing {

// Forwards to `server`, except patches and creates of pods in one namespace, or all writes there:
// they hang until cancelled or Answer(), as behind an unresponsive webhook. Thread-safe.
class HangingClient final : public kube::Client {
 public:
  HangingClient(kube::Client& server, const std::string& ns)
      : server_(server),
        namespace_("/namespaces/" + ns + "/"),
        hanging_("/api/v1" + namespace_ + "pods/") {}

  // From now on all writes in the namespace hang.
  void HangAllWrites() { all_writes_ = true; }

  absl::StatusOr<codec::Json> Do(const kube::Request& request, std::stop_token stop) override {
    const bool creates = request.verb == "create" && request.path + "/" == hanging_;
    const bool writes = all_writes_ && request.method != "GET" &&
                        request.path.find(namespace_) != std::string::npos;
    if (writes || creates || (request.verb == "patch" && request.path.starts_with(hanging_))) {
      tries_ += stop.stop_requested() ? 0 : 1;
      ++under_way_;
      std::unique_lock lock(mutex_);
      wake_.wait(lock, stop, [this] { return answers_; });
      --under_way_;
    }
    return server_.Do(request, stop);
  }
  absl::Status Watch(const kube::Request& request, const kube::WatchEventHandler& on_event,
                     std::stop_token stop) override {
    return server_.Watch(request, on_event, std::move(stop));
  }

  void Answer() {
    std::lock_guard lock(mutex_);
    answers_ = true;
    wake_.notify_all();
  }
  // Calls `act` if a request hangs, and lets none of them end meanwhile.
  template <typename Act>
  void WhileOneHangs(Act act) {
    std::lock_guard lock(mutex_);
    if (under_way_ > 0) {
      act();
    }
  }
  int tries() const { return tries_; }
  int under_way() const { return under_way_; }

 private:
  kube::Client& server_;
  const std::string namespace_;
  const std::string hanging_;
  std::atomic<bool> all_writes_ = false;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool answers_ = false;
  std::atomic<int> tries_ = 0;
  std::atomic<int> under_way_ = 0;
};

// Advances the clock until `over` is ready, but only while `many` patches hang, then for each later
// one. Once the last one has ended, the clock stands still, so later requests are not cut short.
template <typename Result>
Result CutShort(HangingClient& hanging, fakes::FakeClock& clock, int many,
                std::future<Result> over) {
  constexpr std::chrono::seconds kLimit{3};
  fakes::Await([&] { return hanging.under_way() >= many; });
  clock.AwaitWaiters(many);
  clock.Advance(kLimit);
  while (over.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    if (hanging.under_way() > 0) {
      clock.AwaitWaiters(1, std::chrono::seconds(1));
      hanging.WhileOneHangs([&] { clock.Advance(kLimit); });
    }
  }
  return over.get();
}

}  // namespace cachewarm::op::testing

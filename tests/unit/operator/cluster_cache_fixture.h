// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "lib/kube/runtime/event_recorder.h"
#include "operator/metrics.h"
#include "operator/observe/cluster_cache.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"

namespace cachewarm::op::testing {

// Remembers what was recorded.
class EventList final : public kube::EventSink {
 public:
  void Record(kube::Event event) override {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  int Count(const std::string& reason) const {
    std::lock_guard lock(mutex_);
    return static_cast<int>(std::count_if(
        events_.begin(), events_.end(), [&](const auto& event) { return event.reason == reason; }));
  }
  std::vector<kube::Event> All() const {
    std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<kube::Event> events_;
};

// Waits for `condition` with a deadline; true when it came.
inline bool Eventually(const std::function<bool()>& condition,
                       std::chrono::seconds limit = std::chrono::seconds(20)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// A series as name and labels, whatever the order of the labels.
inline std::multiset<std::string> SeriesParts(const std::string& series) {
  std::multiset<std::string> parts;
  const size_t brace = series.find('{');
  parts.insert(series.substr(0, brace));
  if (brace != std::string::npos) {
    std::stringstream labels(series.substr(brace + 1, series.rfind('}') - brace - 1));
    for (std::string label; std::getline(labels, label, ',');) {
      parts.insert(label);
    }
  }
  return parts;
}

// Value of one series in the text exposition; -1 when it is not there.
inline double SeriesValue(const std::string& text, const std::string& series) {
  const std::multiset<std::string> wanted = SeriesParts(series);
  std::stringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.rfind(' ');
    if (space != std::string::npos && !line.starts_with('#') &&
        SeriesParts(line.substr(0, space)) == wanted) {
      return std::stod(line.substr(space + 1));
    }
  }
  return -1;
}

// A cluster over an API server in the process. Tests put objects, then StartCache().
class ClusterCacheFixture : public ::testing::Test {
 protected:
  ClusterCacheFixture()
      : server(clock),
        registry(metrics::MakeRegistry()),
        metrics(MakeMetrics(*registry, "test")),
        cluster({server, clock, [] { return 0.5; }, log}) {}
  ~ClusterCacheFixture() override { StopCache(); }

  void StartCache() {
    cluster.Start(stop.get_token());
    ASSERT_TRUE(Eventually([&] { return cluster.HasSynced(); }));
    // A reflector watches once its handlers have seen the whole list.
    const int reflectors = static_cast<int>(cluster.Stores().size());
    ASSERT_TRUE(Eventually([&] { return server.watches() == reflectors; }));
  }
  void StopCache() {
    stop.request_stop();
    cluster.Join();
  }
  kube::Client& client() { return server; }
  // Requests so far that were to change something.
  size_t Writes() const {
    const std::vector<std::string> requests = server.Requests();
    return static_cast<size_t>(
        std::count_if(requests.begin(), requests.end(), [](const std::string& request) {
          return !request.starts_with("list") && !request.starts_with("watch") &&
                 !request.starts_with("get");
        }));
  }
  double Metric(const std::string& series) const {
    return SeriesValue(registry->Serialize(), series);
  }

  fakes::FakeClock clock;
  fakes::MemoryLog log;
  fakes::FakeApiServer server;
  EventList events;
  std::unique_ptr<metrics::Registry> registry;
  Metrics metrics;
  std::stop_source stop;
  observe::ClusterCache cluster;
};

}  // namespace cachewarm::op::testing

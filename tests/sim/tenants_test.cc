// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "lib/kube/runtime/namespace_lanes.h"
#include "operator/config.h"
#include "operator/controllers/held_pods.h"
#include "operator/controllers/warmups.h"
#include "operator/dry_run/dry_run_queue.h"

// The operator's threads on a virtual clock, while the webhooks of some namespaces do not answer or
// take 10 s.
namespace cachewarm::sim {
namespace {

using std::chrono::seconds;

constexpr int kTenants = 10;

struct Work {
  Duration takes;
  bool ok = true;  // false: the key is added again after a second
};

// Worker threads of one queue. The number of threads is the size of both lanes, as in the daemon.
class Workers {
 public:
  Workers(const kube::Lanes& lanes, std::function<Work(const std::string& key)> work)
      : lanes_(lanes), work_(std::move(work)) {}

  void Add(const std::string& key, Duration at) { Schedule(at, {.key = key, .arrives = true}); }

  void RunUntil(Duration end) {
    while (!events_.empty() && events_.top().first <= Time(end)) {
      const auto [now, event] = events_.top();
      events_.pop();
      if (event.arrives) {
        lanes_.Add(event.key);
      } else if (!event.key.empty()) {
        Finish(now, event.key);
      }
      Begin(now);
    }
  }

  // Time of the last success; no time if there was none.
  Duration done(const std::string& key) const {
    const auto found = done_.find(key);
    return found == done_.end() ? Duration::max() : found->second;
  }
  size_t done_count() const { return done_.size(); }
  Duration last_done() const {
    Duration last{0};
    for (const auto& [key, time] : done_) {
      last = std::max(last, time);
    }
    return last;
  }

 private:
  struct Event {
    std::string key;  // "": only look for keys that may begin
    bool arrives = false;
  };
  using Timed = std::pair<MonoTime, Event>;
  struct Later {
    bool operator()(const Timed& a, const Timed& b) const { return a.first > b.first; }
  };

  static MonoTime Time(Duration at) { return MonoTime(at); }
  void Schedule(Duration at, Event event) { events_.emplace(Time(at), std::move(event)); }

  void Begin(MonoTime now) {
    while (auto key = lanes_.Take(now)) {
      running_[*key] = work_(*key);
      events_.emplace(now + running_[*key].takes, Event{.key = *key});
    }
    if (const auto change = lanes_.NextChange(); change.has_value() && *change > now) {
      events_.emplace(*change, Event{});
    }
  }

  void Finish(MonoTime now, const std::string& key) {
    const Work work = running_.extract(key).mapped();
    lanes_.Done(key, now, work.ok);
    if (work.ok) {
      done_[key] = std::chrono::duration_cast<Duration>(now.time_since_epoch());
    } else {
      events_.emplace(now + seconds(1), Event{.key = key, .arrives = true});
    }
  }

  kube::NamespaceLanes lanes_;
  std::function<Work(const std::string& key)> work_;
  std::priority_queue<Timed, std::vector<Timed>, Later> events_;
  std::map<std::string, Work> running_;
  std::map<std::string, Duration> done_;
};

// Keys of namespaces "team…" take `hanging` and fail; those of the healthy one take `usual`.
std::function<Work(const std::string&)> Hanging(Duration hanging, Duration usual) {
  return [=](const std::string& key) {
    return key.starts_with("team") ? Work{.takes = hanging, .ok = false} : Work{.takes = usual};
  };
}

void AddTenants(Workers& workers, int keys_of_each) {
  for (int i = 0; i < keys_of_each; ++i) {
    for (int tenant = 0; tenant < kTenants; ++tenant) {
      workers.Add(fmt::format("team{}/k{}", tenant, i), Duration(0));
    }
  }
}

void ExpectHealthyKeysWithinTwoSeconds(Workers& workers) {
  for (int i = 0; i < 20; ++i) {
    const std::string key = fmt::format("default/w{}", i);
    workers.Add(key, Duration(i * 7'300));
    workers.RunUntil(Duration(i * 7'300) + seconds(7));
    EXPECT_LE(workers.done(key) - Duration(i * 7'300), seconds(2)) << i;
  }
}

TEST(Tenants, HealthyWarmupIsPlannedWithinTwoSecondsBesideTenWhoseWebhooksHang) {
  // A status write is tried four times, 15 s each.
  Workers plans(controllers::WarmupLanes(op::Config{}.workers), Hanging(seconds(60), Duration(50)));
  AddTenants(plans, 3);
  ExpectHealthyKeysWithinTwoSeconds(plans);
}

TEST(Tenants, HealthyWarmupGetsItsDryRunWithinTwoSeconds) {
  Workers dry_runs(dry_run::kDryRunLanes, Hanging(dry_run::kDryRunLimit * 3, Duration(20)));
  AddTenants(dry_runs, 3);
  ExpectHealthyKeysWithinTwoSeconds(dry_runs);
}

TEST(Tenants, PodsOfAHealthyNamespaceAreReleasedInTime) {
  Workers releases(controllers::kHeldLanes, Hanging(seconds(10), Duration(5)));
  AddTenants(releases, 50);
  for (int i = 0; i < 100; ++i) {
    releases.Add(fmt::format("default/p{}", i), Duration(0));
  }
  releases.RunUntil(seconds(60));
  EXPECT_EQ(releases.done_count(), 100U);
  EXPECT_LE(releases.last_done(), seconds(5));
}

TEST(Tenants, TwoHundredPodsBehindAWebhookOfTenSecondsAreReleasedAtMostThirtySecondsLate) {
  // HeldPods gives the plan 1.5 s to release a pod at its deadline.
  constexpr Duration kGrace{1'500};
  Workers releases(controllers::kHeldLanes,
                   [](const std::string&) { return Work{.takes = seconds(10)}; });
  for (int i = 0; i < 200; ++i) {
    releases.Add(fmt::format("team/p{}", i), kGrace);
  }
  releases.RunUntil(seconds(120));
  EXPECT_EQ(releases.done_count(), 200U);
  EXPECT_LE(releases.last_done(), seconds(30));
}

TEST(Tenants, TenSlowNamespacesShareTheSlowLane) {
  Workers releases(controllers::kHeldLanes,
                   [](const std::string&) { return Work{.takes = seconds(10)}; });
  AddTenants(releases, 20);
  releases.RunUntil(seconds(120));
  EXPECT_EQ(releases.done_count(), 200U);
  EXPECT_LE(releases.last_done(), seconds(30)) << "no namespace waits for all others";
}

}  // namespace
}  // namespace cachewarm::sim

// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/runtime/leader_elector.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/await.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"

namespace cachewarm::kube {
namespace {

using codec::Json;
using fakes::Await;
using std::chrono::seconds;

const ObjectName kLease{.ns = "system", .name = "operator"};

class LeaderElectorTest : public testing::Test {
 protected:
  // One candidate on its own thread; leads until Stop() or until it loses the lease.
  struct Candidate {
    Candidate(LeaderElectorTest& test, kube::Client& client, const std::string& identity)
        : elector({client, test.clock_, [] { return 0.0; }, test.log_},
                  {.lease = kLease, .identity = identity}),
          thread([this](std::stop_token stop) {
            result = elector.Run(
                [this](std::stop_token lost) {
                  ++terms;
                  Await([&] { return lost.stop_requested(); }, seconds(60));
                },
                stop);
            ended = true;
          }) {}
    void Stop() {
      thread.request_stop();
      thread.join();
    }
    LeaderElector elector;
    std::atomic<int> terms = 0;
    std::atomic<bool> ended = false;
    absl::Status result;
    std::jthread thread;
  };

  std::string Holder() {
    const Object lease = server_.Find(kLeases, kLease);
    return lease == nullptr ? "nobody" : codec::TextAt(*lease, {"spec", "holderIdentity"});
  }
  int64_t Transitions() {
    return server_.Find(kLeases, kLease)->at("spec")["leaseTransitions"].get<int64_t>();
  }
  // Advances time only while `sleepers` threads wait: on a loaded machine a renewal must not be
  // late only because its thread did not run.
  template <typename Condition>
  bool AdvanceUntil(int sleepers, Condition condition) {
    return Await([&] {
      if (clock_.AwaitWaiters(sleepers, seconds(0))) {
        clock_.Advance(Duration(100));
      }
      return condition();
    });
  }

  fakes::FakeClock clock_;
  fakes::MemoryLog log_;
  fakes::FakeApiServer server_{clock_};
};

TEST_F(LeaderElectorTest, FirstCandidateLeadsAndWritesTheLease) {
  Candidate one(*this, server_, "one");
  ASSERT_TRUE(Await([&] { return one.elector.IsLeader(); }));
  const Json spec = server_.Find(kLeases, kLease)->at("spec");
  EXPECT_EQ(spec["holderIdentity"], "one");
  EXPECT_EQ(spec["leaseDurationSeconds"], 15);
  EXPECT_EQ(spec["leaseTransitions"], 0);
  EXPECT_EQ(spec["acquireTime"], "2026-01-01T00:00:00.000000Z");
}

TEST_F(LeaderElectorTest, RenewalKeepsAcquireTime) {
  Candidate one(*this, server_, "one");
  ASSERT_TRUE(Await([&] { return one.elector.IsLeader(); }));
  ASSERT_TRUE(AdvanceUntil(2, [&] {
    return codec::TextAt(*server_.Find(kLeases, kLease), {"spec", "renewTime"}) >=
           "2026-01-01T00:00:06";
  }));
  EXPECT_EQ(codec::TextAt(*server_.Find(kLeases, kLease), {"spec", "acquireTime"}),
            "2026-01-01T00:00:00.000000Z");
  EXPECT_TRUE(one.elector.IsLeader());
  EXPECT_EQ(one.terms, 1);
}

TEST_F(LeaderElectorTest, StopReleasesLeaseToNextCandidate) {
  auto one = std::make_unique<Candidate>(*this, server_, "one");
  ASSERT_TRUE(Await([&] { return one->elector.IsLeader(); }));
  Candidate two(*this, server_, "two");
  ASSERT_TRUE(clock_.AwaitWaiters(3)) << "the second one has found the lease held";
  one->Stop();
  EXPECT_TRUE(one->result.ok()) << one->result;
  EXPECT_EQ(Holder(), "");
  const MonoTime released = clock_.Monotonic();
  ASSERT_TRUE(AdvanceUntil(1, [&] { return two.elector.IsLeader(); }));
  EXPECT_LE(clock_.Monotonic() - released, seconds(5));
  EXPECT_EQ(Holder(), "two");
}

TEST_F(LeaderElectorTest, ReleasesLeaseAfterLostRenewalResponse) {
  Candidate one(*this, server_, "one");
  ASSERT_TRUE(Await([&] { return one.elector.IsLeader(); }));
  std::atomic<bool> unheard = false;
  server_.Intercept([&](const Request& request) -> absl::Status {
    if (request.verb != "update" || unheard.exchange(true)) {
      return absl::OkStatus();
    }
    server_.Edit(kLeases, kLease, [](Json& lease) { lease["spec"]["renewTime"] = "written"; });
    return absl::CancelledError("stopped");
  });
  ASSERT_TRUE(AdvanceUntil(2, [&] { return unheard.load(); }));
  one.Stop();
  EXPECT_TRUE(one.result.ok()) << one.result;
  EXPECT_EQ(Holder(), "");
  EXPECT_TRUE(log_.warnings().empty()) << log_.Text();
}

TEST_F(LeaderElectorTest, ReleasesLeaseDespiteConcurrentRenewal) {
  Candidate one(*this, server_, "one");
  ASSERT_TRUE(Await([&] { return one.elector.IsLeader(); }));
  std::atomic<int> late = 2;
  server_.Intercept([&](const Request& request) {
    if (request.verb == "update" && late-- > 0) {
      server_.Edit(kLeases, kLease, [](Json& lease) { lease["spec"]["renewTime"] = "later"; });
    }
    return absl::OkStatus();
  });
  one.Stop();
  EXPECT_EQ(Holder(), "");
  EXPECT_TRUE(log_.warnings().empty()) << log_.Text();
}

TEST_F(LeaderElectorTest, DoesNotReleaseForeignOrDeletedLease) {
  auto one = std::make_unique<Candidate>(*this, server_, "one");
  ASSERT_TRUE(Await([&] { return one->elector.IsLeader(); }));
  server_.Edit(kLeases, kLease, [](Json& lease) { lease["spec"]["holderIdentity"] = "usurper"; });
  one->Stop();
  EXPECT_EQ(Holder(), "usurper");
  server_.Remove(kLeases, kLease);
  one = std::make_unique<Candidate>(*this, server_, "one");
  ASSERT_TRUE(Await([&] { return one->elector.IsLeader(); }));
  server_.Remove(kLeases, kLease);
  one->Stop();
  EXPECT_EQ(Holder(), "nobody");
  EXPECT_TRUE(log_.warnings().empty()) << log_.Text();
}

TEST_F(LeaderElectorTest, LogsRejectedRelease) {
  Candidate one(*this, server_, "one");
  ASSERT_TRUE(Await([&] { return one.elector.IsLeader(); }));
  server_.Intercept([](const Request&) { return absl::UnavailableError("down"); });
  one.Stop();
  EXPECT_EQ(Holder(), "one");
  EXPECT_TRUE(log_.Has("lease was not released"))
      << "the log explains the delay of the next leader";
  EXPECT_TRUE(log_.Has("down"));
}

TEST_F(LeaderElectorTest, DoesNotLeadWhileAnotherRenews) {
  Candidate one(*this, server_, "one");
  ASSERT_TRUE(Await([&] { return one.elector.IsLeader(); }));
  Candidate two(*this, server_, "two");
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(clock_.AwaitWaiters(3));
    clock_.Advance(Duration(100));
    ASSERT_FALSE(one.elector.IsLeader() && two.elector.IsLeader());
  }
  EXPECT_EQ(two.terms, 0);
}

TEST_F(LeaderElectorTest, ReplacesDeadLeaderAfterDurationByLocalClock) {
  // Its renewTime, by its own clock, is far in the future and must be ignored.
  server_.Put(kLeases, {{"metadata", {{"name", "operator"}, {"namespace", "system"}}},
                        {"spec",
                         {{"holderIdentity", "dead"},
                          {"leaseDurationSeconds", 15},
                          {"renewTime", "2036-01-01T00:00:00.000000Z"},
                          {"leaseTransitions", 4}}}});
  Candidate two(*this, server_, "two");
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  const MonoTime first_seen = clock_.Monotonic();
  ASSERT_TRUE(AdvanceUntil(1, [&] { return two.elector.IsLeader(); }));
  EXPECT_GE(clock_.Monotonic() - first_seen, seconds(15));
  EXPECT_EQ(Transitions(), 5);
}

TEST_F(LeaderElectorTest, LeaderStopsBeforeUnrenewedLeaseExpires) {
  std::atomic<bool> down = false;
  server_.Intercept([&](const Request&) -> absl::Status {
    return down ? absl::UnavailableError("down") : absl::OkStatus();
  });
  Candidate one(*this, server_, "one");
  ASSERT_TRUE(Await([&] { return one.elector.IsLeader(); }));
  down = true;
  const MonoTime began = clock_.Monotonic();
  ASSERT_TRUE(AdvanceUntil(1, [&] { return one.ended.load(); }));
  EXPECT_FALSE(one.elector.IsLeader());
  EXPECT_EQ(one.result.code(), absl::StatusCode::kAborted);
  EXPECT_GE(clock_.Monotonic() - began, seconds(7));
}

TEST_F(LeaderElectorTest, HangingRenewalEndsLeadership) {
  std::atomic<bool> hangs = false;
  std::atomic<bool> released = false;
  server_.Intercept([&](const Request&) {
    if (hangs) {
      Await([&] { return released.load(); });
    }
    return absl::OkStatus();
  });
  Candidate one(*this, server_, "one");
  ASSERT_TRUE(Await([&] { return one.elector.IsLeader(); }));
  hangs = true;
  EXPECT_TRUE(AdvanceUntil(1, [&] { return !one.elector.IsLeader(); }));
  released = true;
  ASSERT_TRUE(Await([&] { return one.ended.load(); }));
  EXPECT_EQ(one.result.code(), absl::StatusCode::kAborted);
}

TEST_F(LeaderElectorTest, LeaderStopsWhenAnotherTookOver) {
  Candidate one(*this, server_, "one");
  ASSERT_TRUE(Await([&] { return one.elector.IsLeader(); }));
  server_.Edit(kLeases, kLease, [](Json& lease) { lease["spec"]["holderIdentity"] = "usurper"; });
  ASSERT_TRUE(AdvanceUntil(1, [&] { return one.ended.load(); }));
  EXPECT_EQ(one.result.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Holder(), "usurper") << "a foreign lease is not released";
}

TEST_F(LeaderElectorTest, ConflictingAcquireDoesNotLead) {
  server_.Put(kLeases, {{"metadata", {{"name", "operator"}, {"namespace", "system"}}},
                        {"spec", {{"holderIdentity", ""}, {"leaseTransitions", 1}}}});
  std::atomic<bool> raced = false;
  server_.Intercept([&](const Request& request) {
    if (request.verb == "update" && !raced.exchange(true)) {
      server_.Edit(kLeases, kLease, [](Json& lease) {
        lease["spec"]["holderIdentity"] = "faster";
        lease["spec"]["leaseDurationSeconds"] = 15;
      });
    }
    return absl::OkStatus();
  });
  Candidate one(*this, server_, "one");
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_FALSE(one.elector.IsLeader());
  EXPECT_EQ(Holder(), "faster");
}

TEST_F(LeaderElectorTest, StopWhileWaitingEndsWithoutLeading) {
  server_.Intercept([](const Request&) { return absl::UnavailableError("down"); });
  Candidate one(*this, server_, "one");
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  one.Stop();
  EXPECT_TRUE(one.result.ok());
  EXPECT_EQ(one.terms, 0);
}

TEST_F(LeaderElectorTest, RejectsInconsistentDurations) {
  const LeaderElectorOptions good{.lease = kLease, .identity = "one"};
  EXPECT_TRUE(LeaderElector::Validate(good).ok());
  for (int i = 0; i < 6; ++i) {
    LeaderElectorOptions bad = good;
    (i == 0   ? bad.lease_duration = bad.renew_deadline
     : i == 1 ? bad.renew_deadline = Duration(2'400)
              : bad.retry_period = Duration(i == 2 ? 0 : 2'000));
    bad.identity = i == 3 ? "" : bad.identity;
    bad.lease.ns = i == 4 ? "" : bad.lease.ns;
    bad.lease.name = i == 5 ? "" : bad.lease.name;
    EXPECT_EQ(LeaderElector::Validate(bad).code(), absl::StatusCode::kInvalidArgument) << i;
  }
}

}  // namespace
}  // namespace cachewarm::kube

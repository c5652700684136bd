// SPDX-License-Identifier: Apache-2.0
// Runs the runtime against either API server: both must accept its writes.
#include <atomic>
#include <thread>

#include "fmt/format.h"
#include "lib/codec/json_path.h"
#include "lib/kube/runtime/event_recorder.h"
#include "lib/kube/runtime/leader_elector.h"
#include "lib/kube/runtime/reflector.h"
#include "tests/contract/kube/backend.h"
#include "tests/fakes/await.h"

namespace cachewarm::kube {
namespace {

using codec::Json;
using fakes::Await;

class RuntimeContract : public KubeContract {
 protected:
  Runtime runtime() { return {client(), SystemClock(), SystemRandom(), log_}; }

  fakes::MemoryLog log_;
};
INSTANTIATE_TEST_SUITE_P(Api, RuntimeContract, testing::ValuesIn(Backends()),
                         [](const auto& each) { return each.param; });

TEST_P(RuntimeContract, ReflectorListsThenFollowsChanges) {
  for (int i = 0; i < 5; ++i) {
    Do(Create(kLeases, Lease(fmt::format("lease-{}", i)), {}));
  }
  Reflector reflector(runtime(), {.resource = kLeases, .ns = ns_, .page_items = 2});
  std::atomic<int> changes = 0;
  reflector.OnChange([&](const Change&) { ++changes; });
  std::jthread running([&](std::stop_token stop) { reflector.Run(stop); });
  ASSERT_TRUE(Await([&] { return reflector.store().HasSynced(); }));
  EXPECT_EQ(reflector.store().size(), 5U);
  Do(Delete(kLeases, NameOf("lease-3"), {}));
  Do(MergePatch(kLeases, NameOf("lease-1"), {{"spec", {{"holderIdentity", "x"}}}}, {}));
  ASSERT_TRUE(Await([&] { return changes == 7; }));
  EXPECT_EQ(reflector.store().size(), 4U);
  EXPECT_EQ(codec::TextAt(*reflector.store().Get(NameOf("lease-1")), {"spec", "holderIdentity"}),
            "x");
  for (const CachedObjectPtr& kept : reflector.store().List()) {
    const Object object = kept->Unpack();
    EXPECT_EQ(codec::TextAt(*object, {"kind"}), "Lease");
    EXPECT_FALSE(object->at("metadata").contains("managedFields"));
  }
}

TEST_P(RuntimeContract, LeaseIsAcquiredRenewedAndHandedOver) {
  const auto elect = [&](const std::string& identity, std::atomic<bool>& leading) {
    return std::jthread([&, identity](std::stop_token stop) {
      LeaderElector elector(runtime(), {.lease = NameOf("leader"),
                                        .identity = identity,
                                        .lease_duration = Duration(5'000),
                                        .renew_deadline = Duration(4'000),
                                        .retry_period = Duration(200)});
      elector
          .Run(
              [&](std::stop_token lost) {
                leading = true;
                Await([&] { return lost.stop_requested(); });
                leading = false;
              },
              stop)
          .IgnoreError();
    });
  };
  std::atomic<bool> one_leads = false;
  std::atomic<bool> two_leads = false;
  std::jthread one = elect("one", one_leads);
  ASSERT_TRUE(Await([&] { return one_leads.load(); }));
  const Json first = Do(Get(kLeases, NameOf("leader")));
  ASSERT_TRUE(Await([&] {
    return codec::TextAt(Do(Get(kLeases, NameOf("leader"))), {"spec", "renewTime"}) !=
           codec::TextAt(first, {"spec", "renewTime"});
  }));
  std::jthread two = elect("two", two_leads);
  one.request_stop();
  one.join();
  EXPECT_TRUE(Await([&] { return two_leads.load(); }));
  EXPECT_EQ(codec::TextAt(Do(Get(kLeases, NameOf("leader"))), {"spec", "holderIdentity"}), "two");
  EXPECT_TRUE(log_.warnings().empty()) << log_.Text();
}

TEST_P(RuntimeContract, EventsAndTheirSeriesAreAccepted) {
  const auto regarding = std::make_shared<const Json>(Do(Create(kLeases, Lease("a"), {})));
  EventRecorder recorder(runtime(), {.controller = "cachewarm.io/contract", .instance = "test"});
  recorder.Record({.regarding = regarding,
                   .is_warning = true,
                   .reason = "Tested",
                   .action = "Test",
                   .note = std::string(3000, 'x')});
  ASSERT_TRUE(recorder.Flush(Duration(20'000)));
  const Json listed = Do(List(kEvents, {.ns = ns_}));
  ASSERT_EQ(listed["items"].size(), 1U);
  const Json& event = listed["items"][0];
  EXPECT_EQ(codec::TextAt(event, {"reason"}), "Tested");
  EXPECT_EQ(codec::TextAt(event, {"type"}), "Warning");
  EXPECT_EQ(codec::TextAt(event, {"regarding", "name"}), "a");
  EXPECT_EQ(codec::TextAt(event, {"note"}).size(), 1024U);
  const Json series = {
      {"series", {{"count", 2}, {"lastObservedTime", FormatMicroTime(SystemClock().Now())}}}};
  EXPECT_EQ(Do(MergePatch(kEvents, kube::NameOf(event), series, {}))["series"]["count"], 2);
  EXPECT_TRUE(log_.warnings().empty()) << log_.Text();
}

}  // namespace
}  // namespace cachewarm::kube

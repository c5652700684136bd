// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/held_pods.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <thread>

#include "cli/cluster/policy.h"
#include "lib/api/names.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/await.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/fake_clock.h"
#include "tests/unit/operator/hanging_client.h"

namespace cachewarm::cli {
namespace {

using codec::Json;
using std::chrono::seconds;

class HeldPodsTest : public ::testing::Test {
 protected:
  // Returns a pod that was created `age` ago.
  Json Pod(const std::string& name, seconds age,
           const std::vector<std::string>& gates = {std::string(api::kSchedulingGate)}) {
    Json pod = {{"apiVersion", "v1"},
                {"kind", "Pod"},
                {"metadata",
                 {{"namespace", "team"},
                  {"name", name},
                  {"uid", "uid-" + name},
                  {"creationTimestamp", FormatTime(clock_.Now() - age)},
                  {"annotations", {{"cachewarm.io/warmup", "llama"}}}}},
                {"spec", {{"containers", Json::array({{{"name", "c"}}})}}}};
    for (const std::string& gate : gates) {
      pod["spec"]["schedulingGates"].push_back({{"name", gate}});
    }
    return pod;
  }
  void Put(const Json& pod) { server_.Put(kube::kPods, pod); }

  absl::Status Run(const ReleaseRequest& request) {
    seen_.clear();
    return ReleaseHeld(dependencies_, request, {});
  }
  // Returns "name=result" of every outcome, sorted by name.
  std::string Seen() const {
    std::string text;
    for (const auto& [name, outcome] : seen_) {
      text += (text.empty() ? "" : " ") + name + "=" + std::string(Name(outcome.result));
    }
    return text;
  }
  std::vector<std::string> Gates(const std::string& name) const {
    std::vector<std::string> gates;
    const kube::Object pod = server_.Find(kube::kPods, {"team", name});
    const Json* list = codec::At(*pod, {"spec", "schedulingGates"});
    for (const Json& gate : list == nullptr ? Json::array() : *list) {
      gates.push_back(gate["name"]);
    }
    return gates;
  }
  std::string Annotation(const std::string& name, const std::string& key) const {
    return kube::AnnotationsOf(*server_.Find(kube::kPods, {"team", name}))[key];
  }

  fakes::FakeClock clock_;
  fakes::FakeApiServer server_{clock_};
  std::map<std::string, ReleaseOutcome> seen_;
  ReleaseDependencies dependencies_{
      .client = server_, .clock = clock_, .on_outcome = [this](const auto& each) {
        seen_[each.pod] = each;
      }};
};

TEST_F(HeldPodsTest, ReleasesOnlyHeldPods) {
  Put(Pod("young", seconds(1)));
  Put(Pod("old", seconds(500)));
  Put(Pod("of-kueue", seconds(500), {"kueue.x-k8s.io/admission"}));
  Put(Pod("of-both", seconds(10), {"kueue.x-k8s.io/admission", "cachewarm.io/wait-for-cache"}));
  Put(Pod("free", seconds(500), {}));
  ASSERT_TRUE(Run({.ns = "", .names = {}, .reason = "ReleasedManually"}).ok());
  EXPECT_EQ(Seen(), "of-both=released old=released young=released");
  EXPECT_EQ(seen_["old"].held, Duration(seconds(500)));
  EXPECT_EQ(seen_["old"].warmup, "llama");
  EXPECT_TRUE(Gates("young").empty());
  EXPECT_EQ(Gates("of-both"), std::vector<std::string>{"kueue.x-k8s.io/admission"});
  EXPECT_EQ(Gates("of-kueue"), std::vector<std::string>{"kueue.x-k8s.io/admission"});
  EXPECT_EQ(Annotation("young", "cachewarm.io/released"), "ReleasedManually");
  EXPECT_EQ(Annotation("old", "cachewarm.io/held-seconds"), "500.000");
  ASSERT_TRUE(Run({.ns = "", .names = {}, .reason = "ReleasedManually"}).ok());
  EXPECT_EQ(Seen(), "") << "a second run releases nothing";
}

TEST_F(HeldPodsTest, PastDeadlineLeavesGracePeriodToOperator) {
  Put(Pod("just-due", seconds(64)));
  Put(Pod("over-due", seconds(65)));
  Json annotated = Pod("annotated", seconds(65));
  annotated["metadata"]["annotations"]["cachewarm.io/held-until"] =
      FormatTime(clock_.Now() + seconds(600));
  Put(annotated);
  annotated = Pod("annotated-past", seconds(20));
  annotated["metadata"]["annotations"]["cachewarm.io/held-until"] =
      FormatTime(clock_.Now() - seconds(5));
  Put(annotated);
  const ReleaseRequest request{
      .ns = "", .names = {}, .past_deadline = seconds(60), .reason = "ReleasedAtDeadline"};
  ASSERT_TRUE(Run(request).ok());
  EXPECT_EQ(Seen(), "annotated=not due annotated-past=released just-due=not due over-due=released");
  clock_.Advance(seconds(3600));
  ASSERT_TRUE(Run(request).ok());
  EXPECT_EQ(Seen(), "annotated=released just-due=released");
}

TEST_F(HeldPodsTest, DryRunChangesNothing) {
  Put(Pod("held", seconds(1)));
  ASSERT_TRUE(Run({.ns = "", .names = {}, .dry_run = true, .reason = "ReleasedManually"}).ok());
  EXPECT_EQ(Seen(), "held=would release");
  EXPECT_EQ(Gates("held").size(), 1U);
}

TEST_F(HeldPodsTest, ReleasesNamedPodsAndReportsOthers) {
  Put(Pod("one", seconds(1)));
  Put(Pod("two", seconds(1)));
  Put(Pod("free", seconds(1), {}));
  ASSERT_TRUE(Run({.ns = "team", .names = {"one", "free"}, .reason = "ReleasedManually"}).ok());
  EXPECT_EQ(Seen(), "free=not held one=released");
  EXPECT_EQ(Gates("two").size(), 1U);
  EXPECT_TRUE(
      absl::IsNotFound(Run({.ns = "team", .names = {"missing"}, .reason = "ReleasedManually"})));
}

TEST_F(HeldPodsTest, RequestsOnlyPods) {
  Put(Pod("held", seconds(1)));
  Put(Pod("also", seconds(1)));
  ASSERT_TRUE(Run({.ns = "", .names = {}, .reason = "ReleasedManually"}).ok());
  for (const std::string& request : server_.Requests()) {
    EXPECT_TRUE(request.starts_with("list pods") || request.starts_with("patch pods")) << request;
  }
  EXPECT_EQ(server_.Requests().size(), 3U);
}

TEST_F(HeldPodsTest, ListsUnboundPodsInPages) {
  std::vector<std::string> queries;
  server_.Intercept([&](const kube::Request& request) {
    if (request.verb == "list") {
      queries.push_back(request.query);
    }
    return absl::OkStatus();
  });
  for (int i = 0; i < 1201; ++i) {
    Put(Pod("p" + std::to_string(i), seconds(1)));
  }
  Json bound = Pod("bound", seconds(1), {});
  bound["spec"]["nodeName"] = "node-a";
  Put(bound);
  ASSERT_TRUE(Run({.ns = "", .names = {}, .reason = "ReleasedManually"}).ok());
  EXPECT_EQ(seen_.size(), 1201U);
  ASSERT_EQ(queries.size(), 3U);
  EXPECT_NE(queries[0].find("fieldSelector=spec.nodeName%3D"), std::string::npos) << queries[0];
  EXPECT_NE(queries[0].find("limit=500"), std::string::npos) << queries[0];
}

TEST_F(HeldPodsTest, RestartsExpiredList) {
  for (int i = 0; i < 501; ++i) {
    Put(Pod("p" + std::to_string(i), seconds(1)));
  }
  int forgotten = 0;
  server_.Intercept([&](const kube::Request& request) {
    const bool second = request.query.find("continue=") != std::string::npos;
    return second && forgotten++ == 0 ? absl::OutOfRangeError("410") : absl::OkStatus();
  });
  ASSERT_TRUE(Run({.ns = "", .names = {}, .reason = "ReleasedManually"}).ok());
  EXPECT_EQ(seen_.size(), 501U);
}

TEST_F(HeldPodsTest, HalvesPageThatIsTooLong) {
  for (int i = 0; i < 70; ++i) {
    Put(Pod("p" + std::to_string(i), seconds(1)));
  }
  server_.Intercept([&](const kube::Request& request) {
    return request.query.find("limit=500") == std::string::npos
               ? absl::OkStatus()
               : absl::ResourceExhaustedError("the response is larger than 16777216 bytes");
  });
  ASSERT_TRUE(Run({.ns = "", .names = {}, .reason = "ReleasedManually"}).ok());
  EXPECT_EQ(seen_.size(), 70U);
}

TEST_F(HeldPodsTest, UndecodablePodIsReleased) {
  Json strange = Pod("strange", seconds(500));
  for (int i = 0; i < 4'097; ++i) {
    strange["metadata"]["labels"]["l" + std::to_string(i)] = "";
  }
  Put(strange);
  ASSERT_TRUE(
      Run({.ns = "", .names = {}, .past_deadline = seconds(60), .reason = "ReleasedAtDeadline"})
          .ok());
  EXPECT_EQ(Seen(), "strange=released");
  EXPECT_TRUE(Gates("strange").empty());
}

TEST_F(HeldPodsTest, ConcurrentRemovalOfOtherGateIsRetried) {
  Put(Pod("held", seconds(1), {"other", "cachewarm.io/wait-for-cache"}));
  bool raced = false;
  server_.Intercept([&](const kube::Request& request) {
    if (request.verb == "patch" && !std::exchange(raced, true)) {
      Put(Pod("held", seconds(1)));
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(Run({.ns = "", .names = {}, .reason = "ReleasedManually"}).ok());
  EXPECT_EQ(Seen(), "held=released");
  EXPECT_TRUE(Gates("held").empty());
}

TEST_F(HeldPodsTest, PodReleasedByOthersIsNotHeld) {
  Put(Pod("held", seconds(1)));
  Put(Pod("gone", seconds(1)));
  server_.Intercept([&](const kube::Request& request) {
    if (request.verb == "patch") {
      Put(Pod("held", seconds(1), {}));
      server_.Remove(kube::kPods, {"team", "gone"});
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(Run({.ns = "", .names = {}, .reason = "ReleasedManually"}).ok());
  EXPECT_EQ(Seen(), "gone=not held held=not held");
}

TEST_F(HeldPodsTest, RejectedPatchDoesNotBlockOtherPods) {
  Put(Pod("bad", seconds(1)));
  Put(Pod("good", seconds(1)));
  server_.Intercept([&](const kube::Request& request) {
    return request.verb == "patch" && request.path.ends_with("/bad")
               ? absl::PermissionDeniedError("policy says no")
               : absl::OkStatus();
  });
  ASSERT_TRUE(Run({.ns = "", .names = {}, .reason = "ReleasedManually"}).ok());
  EXPECT_EQ(Seen(), "bad=failed good=released");
  EXPECT_NE(seen_["bad"].message.find("policy says no"), std::string::npos);
}

TEST_F(HeldPodsTest, NamespacesAreReleasedRoundRobin) {
  for (const char* ns : {"a", "b", "c"}) {
    for (int i = 0; i < 20; ++i) {
      Json pod = Pod(std::string(ns) + std::to_string(i), seconds(1));
      pod["metadata"]["namespace"] = ns;
      Put(pod);
    }
  }
  std::string first;
  const ReleaseDependencies dependencies{
      .client = server_, .clock = clock_, .on_outcome = [&](const auto& each) {
        first += first.size() < 20 ? each.ns : "";
      }};
  ASSERT_TRUE(
      ReleaseHeld(dependencies, {.ns = "", .names = {}, .reason = "ReleasedManually"}, {}).ok());
  for (const char ns : {'a', 'b', 'c'}) {
    EXPECT_GE(std::count(first.begin(), first.end(), ns), 3) << first;
  }
}

TEST_F(HeldPodsTest, PodsOfSlowNamespaceAreDeferredAndRetried) {
  op::testing::HangingClient hanging(server_, "a-team");
  for (int i = 0; i < 40; ++i) {
    Json pod = Pod("hangs" + std::to_string(i), seconds(1));
    pod["metadata"]["namespace"] = "a-team";
    Put(pod);
    Put(Pod("free" + std::to_string(i), seconds(1)));
  }
  std::atomic<int> reported = 0;
  const ReleaseDependencies dependencies{
      .client = hanging, .clock = clock_, .on_outcome = [&](const auto& each) {
        EXPECT_EQ(each.result, ReleaseResult::kReleased) << each.message;
        EXPECT_TRUE(each.ns == "team" || reported >= 40);
        ++reported;
      }};
  std::future<absl::Status> run = std::async(std::launch::async, [&] {
    return ReleaseHeld(dependencies, {.ns = "", .names = {}, .reason = "ReleasedManually"}, {});
  });
  ASSERT_TRUE(fakes::Await([&] { return hanging.under_way() == 8; }));
  ASSERT_TRUE(clock_.AwaitWaiters(8));
  clock_.Advance(seconds(3));
  EXPECT_TRUE(fakes::Await([&] { return reported >= 40; }));
  EXPECT_LT(hanging.tries(), 30);
  hanging.Answer();
  EXPECT_TRUE(run.get().ok());
  EXPECT_EQ(reported, 80);
}

TEST_F(HeldPodsTest, StopsWhileAPatchHangs) {
  op::testing::HangingClient hanging(server_, "team");
  Put(Pod("held", seconds(1)));
  const ReleaseDependencies dependencies{
      .client = hanging, .clock = clock_, .on_outcome = [](const auto&) {}};
  std::stop_source stop;
  std::future<absl::Status> run = std::async(std::launch::async, [&] {
    return ReleaseHeld(dependencies, {.ns = "", .names = {}, .reason = "ReleasedManually"},
                       stop.get_token());
  });
  EXPECT_TRUE(fakes::Await([&] { return hanging.under_way() == 1; }));
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(run.get()));
}

TEST_F(HeldPodsTest, AddsAnnotationsWithoutChangingOthers) {
  Json pod = Pod("of-others", seconds(500));
  pod["metadata"]["annotations"] = {{"foreign", "x"}};
  Put(pod);
  pod = Pod("long", seconds(500));
  pod["metadata"]["annotations"]["cachewarm.io/warmup"] = std::string(100'000, 'x');
  pod["metadata"]["annotations"]["cachewarm.io/held-until"] = std::string(100'000, '9');
  Put(pod);
  pod = Pod("bare", seconds(500));
  pod["metadata"].erase("annotations");
  Put(pod);
  ASSERT_TRUE(
      Run({.ns = "", .names = {}, .past_deadline = seconds(60), .reason = "ReleasedAtDeadline"})
          .ok());
  EXPECT_EQ(Seen(), "bare=released long=released of-others=released");
  EXPECT_EQ(Annotation("of-others", "foreign"), "x");
  EXPECT_EQ(Annotation("of-others", "cachewarm.io/released"), "ReleasedAtDeadline");
  EXPECT_EQ(seen_["of-others"].warmup, "");
  EXPECT_EQ(seen_["long"].warmup, "");
  EXPECT_EQ(Annotation("bare", "cachewarm.io/released"), "")
      << "a pod without annotations gets none";
}

TEST_F(HeldPodsTest, ListFailureIsAnError) {
  server_.Intercept([](const kube::Request&) { return absl::PermissionDeniedError("no"); });
  EXPECT_TRUE(absl::IsPermissionDenied(Run({.ns = "", .names = {}, .reason = "ReleasedManually"})));
}

class RemovePolicyAndReleaseTest : public HeldPodsTest {
 protected:
  void PutPolicy() {
    server_.Put(kube::kMutatingPolicyBindings, {{"metadata", {{"name", "cachewarm.io"}}}});
    server_.Put(kube::kMutatingWebhooks, {{"metadata", {{"name", "cachewarm.io"}}}});
  }
  // Advances the clock whenever a thread waits for it.
  std::jthread Tick() {
    return std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        if (clock_.AwaitWaiters(1, seconds(1))) {
          clock_.Advance(seconds(1));
        }
      }
    });
  }
  const ReleaseRequest request_{.ns = "", .names = {}, .reason = "ReleasedHoldingDisabled"};
};

TEST_F(RemovePolicyAndReleaseTest, DeletesPolicyBeforeReleasing) {
  PutPolicy();
  Put(Pod("held", seconds(1)));
  const std::jthread ticking = Tick();
  ASSERT_TRUE(RemovePolicyAndRelease(dependencies_, request_, {}).ok());
  EXPECT_EQ(Seen(), "held=released");
  const auto requests = server_.Requests();
  ASSERT_GE(requests.size(), 3U);
  EXPECT_EQ(requests[0], "delete mutatingadmissionpolicybindings cachewarm.io");
  EXPECT_EQ(requests[1], "delete mutatingwebhookconfigurations cachewarm.io");
  EXPECT_TRUE(server_.All(kube::kMutatingPolicyBindings).empty());
}

TEST_F(RemovePolicyAndReleaseTest, ReleasesPodsCreatedAfterwards) {
  int lists = 0;
  server_.Intercept([&](const kube::Request& request) {
    if (request.verb == "list" && ++lists == 2) {
      Put(Pod("late", seconds(0)));
    }
    return absl::OkStatus();
  });
  const std::jthread ticking = Tick();
  ASSERT_TRUE(RemovePolicyAndRelease(dependencies_, request_, {}).ok());
  EXPECT_EQ(Seen(), "late=released");
  EXPECT_EQ(lists, 4) << "two lists without a new pod end the release";
}

TEST_F(RemovePolicyAndReleaseTest, FailsIfNewPodsAreStillHeld) {
  int made = 0;
  server_.Intercept([&](const kube::Request& request) {
    if (request.verb == "list") {
      Put(Pod("p" + std::to_string(made++), seconds(0)));
    }
    return absl::OkStatus();
  });
  const std::jthread ticking = Tick();
  EXPECT_TRUE(absl::IsDeadlineExceeded(RemovePolicyAndRelease(dependencies_, request_, {})));
}

TEST_F(RemovePolicyAndReleaseTest, ReleasesNothingIfPolicyCannotBeDeleted) {
  PutPolicy();
  Put(Pod("held", seconds(1)));
  server_.Intercept([](const kube::Request& request) {
    return request.verb == "delete" ? absl::PermissionDeniedError("no") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsPermissionDenied(RemovePolicyAndRelease(dependencies_, request_, {})));
  EXPECT_EQ(Gates("held").size(), 1U);
}

}  // namespace
}  // namespace cachewarm::cli

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "operator/plan/captures/ranks.h"
#include "tests/unit/operator/plan/captures/ranks_fixture.h"

namespace cachewarm::plan {
namespace {

using fakes::At;
using fakes::DigestNamed;

struct EndCase {
  const char* name;
  WorkloadKind kind;
  const char* group;
  const char* index;  // labels
};

// A group of indexed run-to-completion pods: r0, the builder, started at 90 and r1 at 91.
class RunToCompletionRanks : public Ranks, public testing::WithParamInterface<EndCase> {
 protected:
  RunToCompletionRanks() {
    builder.in().workload.kind = GetParam().kind;
    Run(0);
    Run(1);
    PlanAt(95);
  }

  static Texts Indexed(int number) {
    return {{GetParam().group, "train"}, {GetParam().index, std::to_string(number)}};
  }
  fakes::PodSetup Pod(int number) const {
    const std::string n = std::to_string(number);
    return {.name = "r" + n,
            .node = "n" + n,
            .created = 80,
            .started = 90 + number,
            .labels = Indexed(number),
            .restart_policy = "Never",
            .probe = false};
  }
  void Run(int number) { builder.Pod(Pod(number)); }
  void End(int number, int time, int exit_code = 0) {
    fakes::PodSetup pod = Pod(number);
    pod.exit_code = exit_code;
    pod.ended = time;
    builder.Pod(pod);
  }
  void CaptureTheBuilder() {
    End(0, 110);
    PlanAt(112);
    Pushed(0, "a");
    PlanAt(120);
  }
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, RunToCompletionRanks,
    testing::Values(EndCase{"job", WorkloadKind::kJob, "jobset.sigs.k8s.io/jobset-name",
                            "batch.kubernetes.io/job-completion-index"},
                    EndCase{"job_set", WorkloadKind::kSelector, "jobset.sigs.k8s.io/jobset-name",
                            "batch.kubernetes.io/job-completion-index"},
                    EndCase{"volcano", WorkloadKind::kSelector, "volcano.sh/job-name",
                            "volcano.sh/task-index"},
                    EndCase{"pytorch_job", WorkloadKind::kSelector, "scheduling.x-k8s.io/pod-group",
                            "training.kubeflow.org/replica-index"}),
    [](const auto& each) { return each.param.name; });

TEST_P(RunToCompletionRanks, RanksAreCapturedAfterAllHaveExited) {
  End(0, 110);
  PlanAt(111);
  EXPECT_EQ(RequestsTo(0).at(0).ready_time, WallTime{}) << "one of them still compiles";
  End(1, 114);
  PlanAt(115);
  EXPECT_EQ(RequestsTo(0).at(0).ready_time, At(114));
  Pushed(0, "a");
  PlanAt(120);
  ASSERT_EQ(RequestsTo(1).size(), 1U);
  EXPECT_EQ(RequestsTo(1)[0].started_time, At(91));
  EXPECT_EQ(RequestsTo(1)[0].ready_time, At(114));
  EXPECT_EQ(RequestsTo(1)[0].base_digest, DigestNamed("a"));
  EXPECT_TRUE(bundles().empty());
  Pushed(1, "b", 2);
  PlanAt(130);
  ASSERT_EQ(bundles().size(), 1U);
  EXPECT_EQ(bundles()[0].digest, DigestNamed("b"));
}

TEST_P(RunToCompletionRanks, RequestsStayEqualAcrossPlans) {
  End(0, 110);
  End(1, 114);
  PlanAt(115);
  const auto asked = RequestsTo(0);
  PlanAt(125);
  EXPECT_EQ(RequestsTo(0), asked);
}

TEST_P(RunToCompletionRanks, FailedPodsAreNoRanks) {
  End(1, 105, 1);
  CaptureTheBuilder();
  EXPECT_EQ(bundles().size(), 1U);
}

TEST_P(RunToCompletionRanks, PodsOfALaterRunAreNoRanks) {
  End(1, 105);
  fakes::PodSetup next = Pod(2);
  next.started = 111;
  builder.Pod(next);
  CaptureTheBuilder();
  Pushed(1, "b");
  PlanAt(125);
  EXPECT_EQ(bundles().size(), 1U);
}

TEST_P(RunToCompletionRanks, QueueWorkersAreNoRanks) {
  fakes::PodSetup alike = Pod(1);
  alike.labels.erase(GetParam().index);
  builder.Pod(alike);
  CaptureTheBuilder();
  EXPECT_EQ(bundles().size(), 1U) << "it runs, and no pod is held for it";
}

}  // namespace
}  // namespace cachewarm::plan

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {
namespace {

using fakes::At;
using fakes::Condition;
using fakes::HasEvent;
using fakes::OneNode;
using fakes::ReasonOf;
using fakes::SnapshotBuilder;

// ---- reasons that only the user can remove ------------------------------------------------------

struct RefusalCase {
  const char* name;
  void (*change)(SnapshotBuilder&);
  const char* reason;
  const char* words;
};

void AddVolume(SnapshotBuilder& b) {
  b.pod_template()["spec"]["volumes"] = {{{"name", "cachewarm"}, {"emptyDir", nullptr}}};
}

void AddMountBelow(SnapshotBuilder& b) {
  b.pod_template()["spec"]["containers"][0]["volumeMounts"] = {
      {{"name", "x"}, {"mountPath", "/var/cache/cachewarm/triton"}}};
}

const RefusalCase kRefusals[] = {
    {"workload", [](SnapshotBuilder& b) { b.in().workload = {.problem = "no Deployment llama"}; },
     "WorkloadNotFound", "no Deployment llama"},
    {"container", [](SnapshotBuilder& b) { b.warmup().spec.container = "engine"; },
     "ContainerNotFound", "\"engine\""},
    {"no_image",
     [](SnapshotBuilder& b) { b.pod_template()["spec"]["containers"][0].erase("image"); },
     "ContainerNotFound", "has no image"},
    {"windows", [](SnapshotBuilder& b) { b.pod_template()["spec"]["os"]["name"] = "windows"; },
     "UnsupportedWorkload", "linux"},
    {"baseline",
     [](SnapshotBuilder& b) {
       b.in().namespace_labels = {{"pod-security.kubernetes.io/enforce", "baseline"}};
     },
     "NamespaceForbidsHostPath", "baseline"},
    {"restricted",
     [](SnapshotBuilder& b) {
       b.in().namespace_labels = {{"pod-security.kubernetes.io/enforce", "restricted"}};
     },
     "NamespaceForbidsHostPath", "restricted"},
    {"volume", AddVolume, "VolumeConflict", "rename that volume"},
    {"mount", AddMountBelow, "VolumeConflict", "set another mountPath"},
    {"labels",
     [](SnapshotBuilder& b) {
       b.in().workload.selector.clear();
       b.pod_template()["metadata"].erase("labels");
     },
     "InvalidSpec", "labels"},
    {"unknown_preset",
     [](SnapshotBuilder& b) {
       b.warmup().spec.caches = {{.name = "triton"}, {.name = "no-such-preset"}};
     },
     "InvalidSpec",
     "spec.caches[1].name: \"no-such-preset\" is not a cache kind that cachewarm knows (known: "
     "torchinductor, triton, "},
    {"preset_name_taken",
     [](SnapshotBuilder& b) {
       b.warmup().spec.caches = {
           {.name = "triton", .env = "MY_CACHE", .path = "mine", .include = {}}};
     },
     "InvalidSpec", "spec.caches[0].name: \"triton\" is a cache kind that cachewarm knows"},
    {"overlap_workload",
     [](SnapshotBuilder& b) {
       b.in().others = {
           {.name = "first", .older = true, .workload_ref = b.warmup().spec.workload_ref}};
     },
     "OverlapsAnotherWarmup", "first"},
    {"overlap_labels",
     [](SnapshotBuilder& b) {
       b.in().others = {{.name = "first", .older = true, .labels = {{"app", "llama"}}}};
     },
     "OverlapsAnotherWarmup", "first"},
    {"no_node", [](SnapshotBuilder& b) { b.node("n1").ready = false; }, "NoFittingNode", "Ready"},
    {"selector_without_pods",
     [](SnapshotBuilder& b) {
       b.in().workload.kind = WorkloadKind::kSelector;
       b.in().workload.pod_template = nullptr;
     },
     "WorkloadNotFound", "no pod matches"},
};

class Refusals : public testing::TestWithParam<RefusalCase> {};

TEST_P(Refusals, RefusedWarmupIsNotInjectedAndSaysWhatToDo) {
  SnapshotBuilder builder = OneNode();
  GetParam().change(builder);
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), GetParam().reason);
  ASSERT_NE(Condition(plan, "Ready"), nullptr);
  EXPECT_EQ(Condition(plan, "Ready")->status, "False");
  EXPECT_NE(Condition(plan, "Ready")->message.find(GetParam().words), std::string::npos)
      << Condition(plan, "Ready")->message;
  EXPECT_FALSE(plan.status.injection.has_value());
  EXPECT_TRUE(HasEvent(plan, GetParam().reason));
}

TEST_P(Refusals, RefusalEndsEarlierInjection) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  builder.Pod({.name = "held", .held = true, .created = 95});
  GetParam().change(builder);
  if (builder.in().workload.kind == WorkloadKind::kSelector) {
    return;  // the template is taken from the held pod
  }
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.set_inject_label, false);
  EXPECT_FALSE(plan.status.injection.has_value());
  ASSERT_NE(fakes::ReleaseOf(plan, "held"), nullptr);
  EXPECT_EQ(fakes::ReleaseOf(plan, "held")->reason, "ReleasedHoldingDisabled");
}

INSTANTIATE_TEST_SUITE_P(All, Refusals, testing::ValuesIn(kRefusals),
                         [](const auto& each) { return each.param.name; });

TEST(Acceptance, YoungerOverlappingWarmupIsIgnored) {
  SnapshotBuilder builder = OneNode();
  builder.in().others = {{.name = "second", .older = false, .labels = {{"app", "llama"}}}};
  builder.Accepted();
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "Injecting");
}

TEST(Acceptance, OlderWarmupOfOtherPodsIsIgnored) {
  SnapshotBuilder builder = OneNode();
  builder.in().others = {{.name = "first", .older = true, .labels = {{"app", "mistral"}}}};
  builder.Accepted();
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "Injecting");
}

// ---- the container ------------------------------------------------------------------------------

TEST(Acceptance, ChoosesContainerThatRequestsAccelerator) {
  SnapshotBuilder builder;
  builder.Node({.name = "g1", .gpu_type = fakes::kH100, .gpus = 8});
  builder.pod_template()["spec"]["containers"] = {
      {{"name", "proxy"}, {"image", "envoy"}},
      {{"name", "engine"},
       {"image", "vllm:1"},
       {"resources", {{"limits", {{"nvidia.com/gpu", "2"}}}}}}};
  builder.Accepted();
  EXPECT_EQ(builder.Decide().status.injection->container, "engine");
}

TEST(Acceptance, JobIsMatchedByNameAcrossRecreation) {
  SnapshotBuilder builder = OneNode();
  builder.in().workload.kind = WorkloadKind::kJob;
  builder.in().workload.name = "train";
  builder.in().workload.selector = {{"batch.kubernetes.io/controller-uid", "u-1"}};
  builder.Accepted();
  EXPECT_EQ(builder.Decide().status.injection->labels,
            (std::map<std::string, std::string>{{"batch.kubernetes.io/job-name", "train"}}));
}

// The Job of an accepted warmup was deleted.
SnapshotBuilder WithDeletedJob() {
  SnapshotBuilder builder = OneNode();
  builder.in().workload.kind = WorkloadKind::kJob;
  builder.in().workload.name = "train";
  builder.Accepted();
  builder.in().workload.found = false;
  builder.in().workload.problem = "no Job named \"train\"";
  builder.in().workload.pod_template = nullptr;
  return builder;
}

TEST(Acceptance, DeletedJobContinuesInjectingForTheNextJobOfItsName) {
  SnapshotBuilder builder = WithDeletedJob();
  const auto before = builder.warmup().status.injection;
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "Injecting");
  ASSERT_TRUE(plan.status.injection.has_value());
  EXPECT_EQ(plan.status.injection->container, before->container);
  EXPECT_EQ(plan.status.injection->labels, before->labels);
  EXPECT_NE(plan.set_inject_label, false);
  EXPECT_TRUE(plan.jobs_to_create.empty());
  EXPECT_FALSE(plan.dry_run.has_value());
}

TEST(Acceptance, JobThatNeverExistedIsNotInjected) {
  SnapshotBuilder builder = WithDeletedJob();
  builder.warmup().status.injection.reset();
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "WorkloadNotFound");
  EXPECT_FALSE(plan.status.injection.has_value());
}

TEST(Acceptance, DeletedDeploymentEndsInjection) {
  SnapshotBuilder builder = WithDeletedJob();
  builder.in().workload.kind = WorkloadKind::kDeployment;
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "WorkloadNotFound");
}

TEST(Acceptance, SelectorTakesTemplateFromNewestPod) {
  SnapshotBuilder builder = OneNode();
  builder.in().workload.kind = WorkloadKind::kSelector;
  builder.in().workload.pod_template = nullptr;
  builder.Pod({.name = "old", .node = "n1", .image = "server:0", .created = 1, .started = 2});
  builder.Pod({.name = "new", .node = "n1", .image = "server:1", .created = 9, .started = 10});
  builder.Accepted();
  const Plan plan = builder.Decide();
  EXPECT_EQ(plan.status.injection->container, "server");
  ASSERT_EQ(plan.status.builders.size(), 1U);
  EXPECT_EQ(plan.status.builders[0].image, "server:1");
}

TEST(Acceptance, SelectorTakesTemplateFromNewestSucceededPod) {
  SnapshotBuilder builder = OneNode();
  builder.in().workload.kind = WorkloadKind::kSelector;
  builder.in().workload.pod_template = nullptr;
  for (const auto& [name, created, exit_code] :
       {std::tuple("old", 1, 0), {"well", 5, 0}, {"bad", 9, 1}}) {
    builder.Pod({.name = name,
                 .node = "n1",
                 .image = std::string("server:") + name,
                 .created = created,
                 .started = created + 1,
                 .exit_code = exit_code,
                 .restart_policy = "Never",
                 .probe = false});
  }
  const auto image = [&] {
    const Plan plan = builder.Decide();
    return plan.dry_run ? (*plan.dry_run->unmodified)["spec"]["containers"][0]["image"]
                        : codec::Json();
  };
  EXPECT_EQ(image(), "server:well");
  builder.Pod({.name = "runs", .node = "n1", .image = "server:runs", .created = 0, .started = 1});
  EXPECT_EQ(image(), "server:runs") << "a running pod precedes all candidates";
}

TEST(Acceptance, SelectorWithoutPodsContinuesInjecting) {
  SnapshotBuilder builder = OneNode();
  builder.in().workload.kind = WorkloadKind::kSelector;
  builder.in().workload.pod_template = nullptr;
  builder.Pod({.name = "only", .node = "n1", .created = 1, .started = 2});
  builder.Accepted();
  builder.in().pods.clear();
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "Injecting");
  EXPECT_EQ(fakes::Condition(plan, "Ready")->status, "True");
  ASSERT_TRUE(plan.status.injection.has_value());
  EXPECT_EQ(plan.status.injection->container, "server");
  EXPECT_FALSE(plan.status.injection->gate);
  builder.in().create_failure = {.time = At(99), .message = "volume \"cachewarm\" is not allowed"};
  const Plan refused = builder.Decide();
  EXPECT_EQ(ReasonOf(refused, "Ready"), "InjectionRejected");
  EXPECT_FALSE(refused.status.injection.has_value()) << "no pod could be created any more";
}

// ---- directories --------------------------------------------------------------------------------

struct DirectoryCase {
  const char* name;
  bool was_injecting;
  int prepared;
  int pending;   // the agent is ready and reports no problem
  int unusable;  // the agent reports the reason
  int no_agent;
  const char* reason;
};

class UnpreparedNodes : public testing::TestWithParam<DirectoryCase> {};

TEST_P(UnpreparedNodes, InjectsWhileAtMostOneNodeOrOneInTenIsUnprepared) {
  const DirectoryCase& c = GetParam();
  SnapshotBuilder builder;
  builder.Node({.name = "first"});
  if (c.was_injecting) {
    builder.Accepted();
  } else {
    builder.DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
  }
  if (c.prepared == 0) {
    builder.reported("first").prepared.clear();
    builder.reported("first").message = "mounted read-only";
  }
  for (int i = 1; i < c.prepared; ++i) {
    builder.Node({.name = "p" + std::to_string(i)});
  }
  for (int i = 0; i < c.pending; ++i) {
    builder.Node({.name = "w" + std::to_string(i), .prepared = false});
  }
  for (int i = 0; i < c.unusable; ++i) {
    const std::string name = "u" + std::to_string(i);
    builder.Node({.name = name, .prepared = false});
    builder.reported(name).message = "mounted noexec";
  }
  for (int i = 0; i < c.no_agent; ++i) {
    builder.Node({.name = "a" + std::to_string(i), .agent = false, .prepared = false});
  }
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), c.reason);
}

INSTANTIATE_TEST_SUITE_P(
    All, UnpreparedNodes,
    testing::Values(DirectoryCase{"all", false, 3, 0, 0, 0, "Injecting"},
                    DirectoryCase{"first_waits", false, 2, 1, 0, 0, "PreparingNodes"},
                    DirectoryCase{"joins_later", true, 2, 1, 0, 0, "Injecting"},
                    DirectoryCase{"two_join", true, 2, 2, 0, 0, "PreparingNodes"},
                    DirectoryCase{"one_unusable", false, 2, 0, 1, 0, "Injecting"},
                    DirectoryCase{"two_unusable", false, 2, 0, 2, 0, "DirectoryUnusable"},
                    DirectoryCase{"two_unusable_later", true, 2, 0, 2, 0, "DirectoryUnusable"},
                    DirectoryCase{"one_without_agent", false, 2, 0, 0, 1, "Injecting"},
                    DirectoryCase{"mixed", true, 2, 0, 1, 1, "DirectoryUnusable"},
                    DirectoryCase{"one_in_ten", false, 50, 0, 3, 2, "Injecting"},
                    DirectoryCase{"one_in_ten_joins", true, 50, 5, 0, 0, "Injecting"},
                    DirectoryCase{"over_one_in_ten", true, 50, 0, 3, 3, "DirectoryUnusable"},
                    DirectoryCase{"none", false, 0, 0, 0, 0, "DirectoryUnusable"}),
    [](const auto& each) { return each.param.name; });

TEST(Acceptance, WithoutGatesEveryNodeNeedsADirectory) {
  SnapshotBuilder builder = OneNode();
  builder.warmup().spec.gate.mode = api::GateMode::kNever;
  builder.Accepted();
  EXPECT_FALSE(builder.Decide().status.injection->gate);
  builder.Node({.name = "n2", .agent = false, .prepared = false});
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "DirectoryUnusable");
}

TEST(Acceptance, IneligibleNodeNeedsNoDirectory) {
  SnapshotBuilder builder = OneNode();
  builder.Node({.name = "control", .agent = false, .prepared = false});
  builder.node("control").taints = {{.key = "control-plane", .effect = "NoSchedule"}};
  builder.Accepted();
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "Injecting");
}

TEST(Acceptance, DirectoryOfAnotherRunAsDoesNotCount) {
  SnapshotBuilder builder = OneNode();
  builder.pod_template()["spec"]["securityContext"]["runAsUser"] = 1000;
  builder.DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "PreparingNodes");
  builder.reported("n1").prepared = {"u1000"};
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "Injecting");
}

TEST(Acceptance, RecreatedNodeIsNotPrepared) {
  SnapshotBuilder builder = OneNode();
  builder.DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
  builder.node("n1").meta.uid = "another";
  EXPECT_EQ(ReasonOf(builder.Decide(), "Ready"), "PreparingNodes");
}

// ---- paused and deleted -------------------------------------------------------------------------

TEST(Acceptance, PausedWarmupKeepsInjectingWithoutGates) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  builder.warmup().spec.paused = true;
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "Paused");
  ASSERT_TRUE(plan.status.injection.has_value());
  EXPECT_FALSE(plan.status.injection->gate);
}

// A paused warmup prepares no directory and keeps no pod off the node.
TEST(Acceptance, UnpreparedNewNodeEndsInjectionWhilePaused) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  builder.warmup().spec.paused = true;
  builder.Node({.name = "joins", .prepared = false});
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "PreparingNodes");
  EXPECT_NE(Condition(plan, "Ready")->message.find("spec.paused"), std::string::npos);
  EXPECT_FALSE(plan.status.injection.has_value());
}

TEST(Acceptance, NewPausedWarmupInjectsNothing) {
  SnapshotBuilder builder = OneNode();
  builder.warmup().spec.paused = true;
  builder.DryRunAnswered(DryRunResult::kAllowed, DryRunResult::kAllowed);
  const Plan plan = builder.Decide();
  EXPECT_EQ(ReasonOf(plan, "Ready"), "Paused");
  EXPECT_EQ(Condition(plan, "Ready")->status, "False");
  EXPECT_FALSE(plan.status.injection.has_value());
}

TEST(Acceptance, DeletedWarmupRemovesEverything) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  builder.Pod({.name = "held", .held = true, .created = 99});
  builder.in().jobs = {{.name = "llama-1"}};
  builder.cache("n1").spec.warmups = {{.uid = "7d0f"}, {.uid = "other"}};
  builder.warmup().deleting = true;
  const Plan plan = builder.Decide();
  EXPECT_FALSE(plan.status_changed);
  EXPECT_EQ(plan.set_inject_label, false);
  EXPECT_EQ(plan.jobs_to_delete, std::vector<std::string>{"llama-1"});
  ASSERT_NE(fakes::ReleaseOf(plan, "held"), nullptr);
  ASSERT_NE(fakes::EntriesOf(plan, "n1"), nullptr);
  EXPECT_TRUE(fakes::EntriesOf(plan, "n1")->spec.warmups.empty());
  EXPECT_FALSE(plan.requeue_after.has_value());
}

TEST(Acceptance, UnchangedConditionKeepsTransitionTime) {
  SnapshotBuilder builder = OneNode();
  builder.Accepted();
  builder.Now(150);
  const Plan plan = builder.Decide();
  EXPECT_EQ(Condition(plan, "Ready")->last_transition_time, At(100));
  EXPECT_FALSE(HasEvent(plan, "Injecting"));
}

TEST(Acceptance, TaintedFreshNodesDoNotEndInjection) {
  SnapshotBuilder builder;
  builder.Node({.name = "n1"});
  builder.Accepted();
  for (const char* name : {"f1", "f2", "f3"}) {
    builder.Node({.name = name, .agent = false, .prepared = false, .has_facts = false});
    builder.node(name).taints = {{.key = "cachewarm.io/warming", .effect = "NoSchedule"}};
  }
  EXPECT_EQ(fakes::ReasonOf(builder.Decide(), "Ready"), "Injecting");
  for (const char* name : {"f1", "f2", "f3"}) {
    builder.node(name).taints.clear();
  }
  EXPECT_EQ(fakes::ReasonOf(builder.Decide(), "Ready"), "DirectoryUnusable")
      << "their slots have expired";
}

// ---- the evaluated nodes ------------------------------------------------------------------------

using Labels = std::map<std::string, std::string>;

TEST(EvaluatedNodes, NodeSelectorOfTheTemplateIsInTheStatus) {
  SnapshotBuilder b;
  b.Node({.name = "n1", .labels = {{"pool", "a"}}}).Accepted();
  b.pod_template()["spec"]["nodeSelector"] = {{"pool", "a"}};
  const Plan plan = b.Decide();
  ASSERT_TRUE(plan.status.injection);
  EXPECT_EQ(plan.status.injection->node_selector, (Labels{{"pool", "a"}}));
}

TEST(EvaluatedNodes, TemplateWithoutNodeSelectorRestrictsNoPod) {
  const Plan plan = OneNode().Accepted().Decide();
  ASSERT_TRUE(plan.status.injection);
  EXPECT_TRUE(plan.status.injection->node_selector.empty());
}

TEST(EvaluatedNodes, TemplateThatMovedToANodeWithoutAgentIsNotInjected) {
  SnapshotBuilder b;
  b.Node({.name = "n1", .labels = {{"pool", "a"}}});
  b.Node({.name = "n2", .labels = {{"pool", "b"}}, .agent = false, .prepared = false});
  b.pod_template()["spec"]["nodeSelector"] = {{"pool", "a"}};
  b.Accepted();
  ASSERT_TRUE(b.Decide().status.injection);
  b.pod_template()["spec"]["nodeSelector"] = {{"pool", "b"}};
  const Plan plan = b.Decide();
  EXPECT_FALSE(plan.status.injection);
  EXPECT_EQ(ReasonOf(plan, "Ready"), "DirectoryUnusable");
}

TEST(EvaluatedNodes, GroupWithSeveralTemplatesRestrictsNoPod) {
  SnapshotBuilder b;
  b.Node({.name = "n1", .labels = {{"pool", "a"}}}).Accepted();
  b.pod_template()["spec"]["nodeSelector"] = {{"pool", "a"}};
  b.in().workload.kind = WorkloadKind::kGroup;
  const Plan plan = b.Decide();
  ASSERT_TRUE(plan.status.injection);
  EXPECT_TRUE(plan.status.injection->node_selector.empty());
}

}  // namespace
}  // namespace cachewarm::plan

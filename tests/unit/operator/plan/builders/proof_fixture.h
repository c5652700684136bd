// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/snapshot_builder.h"

namespace cachewarm::plan {

// Two nodes, n1 and n2, and no pods. Bundles are built by Jobs and must be proven.
class Proof : public testing::Test {
 protected:
  Proof() {
    cluster_.Node({.name = "n1"}).Node({.name = "n2"});
    cluster_.in().workload.replicas = 0;
    cluster_.warmup().spec.compile.builder = api::Builder::kJob;
    cluster_.warmup().spec.compile.proof = api::Proof::kEngine;
    cluster_.warmup().spec.compile.settle_seconds = 1;
    cluster_.Accepted();
  }

  // The workload asks for `gpus` devices, which n1 has.
  void UseGpus(int gpus) {
    gpus_ = gpus;
    cluster_.Node({.name = "n1", .gpus = gpus});
    cluster_.pod_template()["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] =
        gpus;
    cluster_.Accepted();
  }

  // Applies the plan as the API server would.
  void Apply(const Plan& plan) {
    cluster_.status() = plan.status;
    for (const NodeEntries& entries : plan.nodes) {
      cluster_.cache(entries.node).spec = entries.spec;
    }
    for (const DesiredJob& job : plan.jobs_to_create) {
      cluster_.in().jobs.push_back({.name = job.name, .uid = "j", .created = cluster_.in().now});
    }
    for (const std::string& name : plan.jobs_to_delete) {
      std::erase_if(cluster_.in().jobs, [&](const BuilderJob& job) { return job.name == name; });
      std::erase_if(cluster_.in().pods, [&](const auto& pod) {
        return pod->meta.labels.AsMap().at("batch.kubernetes.io/job-name") == name;
      });
    }
  }

  Plan Step(int second) {
    cluster_.Now(second);
    Plan plan = cluster_.Decide();
    Apply(plan);
    return plan;
  }

  const api::BuilderStatus& Builder() { return cluster_.status().builders.at(0); }

  std::vector<std::string> BundlesOf(const std::string& node) {
    std::vector<std::string> out;
    for (const api::WantedWarmup& entry : cluster_.cache(node).spec.warmups) {
      for (const api::WantedBundle& bundle : entry.bundles) {
        out.push_back(bundle.digest.ToString());
      }
    }
    return out;
  }

  // A builder Job compiles on n1, from second `at`, and its bundle `digit` is in the store 30 s
  // later.
  Plan Build(int at, const std::string& digit) {
    const Plan first = Step(at);
    EXPECT_EQ(first.jobs_to_create.size(), 1U);
    build_job_ = Builder().job;
    const std::string pod = "b" + std::to_string(at);
    cluster_.Pod({.name = pod,
                  .node = "n1",
                  .gpus = gpus_,
                  .created = at + 1,
                  .started = at + 3,
                  .ready = at + 20,
                  .job = build_job_});
    Step(at + 21);
    EXPECT_EQ(cluster_.cache("n1").spec.captures.size(), 1U);
    const std::string id = cluster_.cache("n1").spec.captures.at(0).id;
    cluster_.cache("n1").status.captures = {{.id = id,
                                             .state = api::CaptureState::kPushed,
                                             .digest = fakes::DigestNamed(digit),
                                             .bytes = 1234,
                                             .files = 9}};
    cluster_.cache("n1").status.starts = {
        {.pod_uid = "uid-" + pod, .result = api::StartResult::kMiss}};
    digest_ = fakes::DigestNamed(digit);
    return Step(at + 30);
  }

  void Activate() {
    cluster_.reported("n1").bundles = {{.digest = digest_, .state = api::BundleState::kActive}};
  }

  // Builds until the Job of the proof is requested, at second `at` + 35.
  void Request(int at = 100, const std::string& digit = "c") {
    Build(at, digit);
    Step(at + 31);
    Activate();
    const Plan plan = Step(at + 35);
    ASSERT_EQ(plan.jobs_to_create.size(), 1U);
    proof_job_ = plan.jobs_to_create[0].name;
  }

  fakes::PodSetup ProofPod() const {
    return {.name = "p",
            .node = "n1",
            .gpus = gpus_,
            .created = 136,
            .started = 137,
            .job = proof_job_};
  }

  // The container of the proof has started.
  void Start(int at = 100, const std::string& digit = "c") {
    Request(at, digit);
    fakes::PodSetup pod = ProofPod();
    pod.created = at + 36;
    pod.started = at + 37;
    cluster_.Pod(pod);
    Step(at + 38);
  }

  // The engine refuses the bundle: its container exits.
  Plan Refuse(int at = 100, const std::string& digit = "c") {
    Start(at, digit);
    fakes::PodSetup pod = ProofPod();
    pod.created = at + 36;
    pod.started = at + 37;
    pod.exit_code = 1;
    pod.words = "kernel 7 is missing";
    cluster_.Pod(pod);
    return Step(at + 40);
  }

  fakes::SnapshotBuilder cluster_;
  int gpus_ = 0;
  std::string build_job_;
  std::string proof_job_;
  Digest digest_;
};

}  // namespace cachewarm::plan

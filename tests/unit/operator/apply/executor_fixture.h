// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/codec/json_path.h"
#include "operator/apply/executor.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/hanging_client.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::apply {

// Executes a plan with an executor against a fake API server. Patches of pods in namespace "team"
// hang.
class ExecutorTest : public op::testing::ClusterCacheFixture {
 protected:
  ExecutorTest()
      : hanging(server, "team"),
        executor({.client = hanging,
                  .clock = clock,
                  .events = events,
                  .metrics = metrics,
                  .log = log,
                  .job_refusals = refusals,
                  .release_refusals = release_refusals}) {
    const kube::Object stored = server.Put(kube::kCacheWarmups, op::testing::WarmupObject("llama"));
    warmup = api::DecodeCacheWarmup(*stored).value();
  }

  std::shared_ptr<const api::Pod> Stored(const codec::Json& pod) {
    return std::make_shared<const api::Pod>(api::DecodePod(server.Put(kube::kPods, pod)).value());
  }

  absl::Status Execute() {
    const absl::StatusOr<ExecuteResult> result = executor.Execute(warmup, plan, {});
    rejected = result.ok() ? result->rejected : 0;
    return result.status();
  }

  bool IsHeld(const std::string& name) {
    const kube::Object pod = server.Find(kube::kPods, {"default", name});
    const codec::Json* gates = codec::At(*pod, {"spec", "schedulingGates"});
    return gates != nullptr && !gates->empty();
  }

  static model::DesiredJob JobNamed(const std::string& name) {
    return {.name = name,
            .object = std::make_shared<const codec::Json>(
                codec::Json{{"apiVersion", "batch/v1"},
                            {"kind", "Job"},
                            {"metadata", {{"name", name}, {"namespace", "default"}}}})};
  }

  // A pod whose patches hang.
  std::shared_ptr<const api::Pod> Hanging(const std::string& name) {
    codec::Json pod = op::testing::HeldPodObject(name, "llama");
    pod["metadata"]["namespace"] = "team";
    return Stored(pod);
  }

  // Executes while `many` patches hang.
  absl::Status ExecuteThough(int many) {
    return CutShort(hanging, clock, many,
                    std::async(std::launch::async, [this] { return Execute(); }));
  }

  // Stores a held pod and returns the request to annotate its deadline.
  model::PodAnnotation HeldUntil(const std::string& name) {
    const auto pod = Stored(op::testing::HeldPodObject(name, "llama"));
    return {.ns = "default",
            .pod = name,
            .uid = pod->meta.uid,
            .key = "cachewarm.io/held-until",
            .value = "v",
            .held = pod};
  }
  std::map<std::string, std::string> Annotations(const std::string& pod) {
    return kube::AnnotationsOf(*server.Find(kube::kPods, {"default", pod}));
  }
  codec::Json Warmup() { return *server.Find(kube::kCacheWarmups, {"default", "llama"}); }

  op::testing::HangingClient hanging;
  JobRefusals refusals;
  std::vector<std::string>
      changed;  // namespaces in which releases became, or ceased to be, rejected
  ReleaseRefusals release_refusals{clock, [this](const std::string& ns) { changed.push_back(ns); }};
  Executor executor;
  size_t rejected = 0;  // of the last successful Execute()
  api::CacheWarmup warmup;
  model::Plan plan;
};

}  // namespace cachewarm::apply

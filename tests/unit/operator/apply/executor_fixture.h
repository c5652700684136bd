// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/apply/executor.h"
#include "tests/unit/operator/cluster_cache_fixture.h"
#include "tests/unit/operator/hanging_client.h"
#include "tests/unit/operator/objects.h"

namespace cachewarm::apply {

// An executor over a fake API server, the plan that it carries out, and what comes of that. The
// pods of namespace "team" hang when they are patched.
class ExecutorTest : public op::testing::ClusterCacheFixture {
 protected:
  ExecutorTest()
      : hanging(server, "team"),
        executor({.client = hanging,
                  .clock = clock,
                  .events = events,
                  .metrics = metrics,
                  .log = log,
                  .job_refusals = refusals}) {
    const kube::Object stored = server.Put(kube::kCacheWarmups, op::testing::WarmupObject("llama"));
    snapshot.warmup = api::DecodeCacheWarmup(*stored).value();
  }

  std::shared_ptr<const api::Pod> Stored(const codec::Json& pod) {
    return std::make_shared<const api::Pod>(api::DecodePod(server.Put(kube::kPods, pod)).value());
  }

  absl::Status Execute() {
    const absl::StatusOr<ExecuteResult> result = executor.Execute(snapshot, plan, {});
    rejected = result.ok() ? result->rejected : 0;
    return result.status();
  }

  bool IsHeld(const std::string& name) {
    const kube::Object pod = server.Find(kube::kPods, {"default", name});
    const codec::Json* gates = kube::At(*pod, {"spec", "schedulingGates"});
    return gates != nullptr && !gates->empty();
  }

  static plan::DesiredJob JobNamed(const std::string& name) {
    return {.name = name,
            .object = std::make_shared<const codec::Json>(
                codec::Json{{"apiVersion", "batch/v1"},
                            {"kind", "Job"},
                            {"metadata", {{"name", name}, {"namespace", "default"}}}})};
  }

  // A pod of the namespace whose pods hang.
  std::shared_ptr<const api::Pod> Hanging(const std::string& name) {
    codec::Json pod = op::testing::HeldPodObject(name, "llama");
    pod["metadata"]["namespace"] = "team";
    return Stored(pod);
  }

  // What comes of it when `many` patches hang at once.
  absl::Status ExecuteThough(int many) {
    return CutShort(hanging, clock, many,
                    std::async(std::launch::async, [this] { return Execute(); }));
  }

  // Position of the first request that starts with `prefix`; -1 when there is none.
  int Position(const std::string& prefix) {
    const std::vector<std::string> requests = server.Requests();
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].starts_with(prefix)) {
        return static_cast<int>(i);
      }
    }
    return -1;
  }

  // The request to note on a held pod, which is stored by this, how long it waits.
  plan::PodAnnotation HeldUntil(const std::string& name) {
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
  Executor executor;
  size_t rejected = 0;  // of the last Execute() that was OK
  plan::Snapshot snapshot;
  plan::Plan plan;
};

}  // namespace cachewarm::apply

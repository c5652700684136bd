// SPDX-License-Identifier: Apache-2.0
#include "operator/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cachewarm::op {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(OperatorMetrics, PassRegistryValidation) {
  const auto registry = metrics::MakeRegistry();
  MakeMetrics(*registry, "1.2.3");
  EXPECT_TRUE(registry->status().ok()) << registry->status();
}

TEST(OperatorMetrics, ReportBuildVersion) {
  const auto registry = metrics::MakeRegistry();
  MakeMetrics(*registry, "1.2.3");
  EXPECT_THAT(registry->Serialize(), HasSubstr("cachewarm_build_info{version=\"1.2.3\"} 1"));
}

TEST(OperatorMetrics, ForgetOnlySeriesOfTheWarmup) {
  const auto registry = metrics::MakeRegistry();
  const Metrics metrics = MakeMetrics(*registry, "1");
  for (const char* warmup : {"llama", "mistral"}) {
    metrics.pod_starts.Add({"default", warmup, "cpu", "hit"});
    metrics.start_seconds.Observe({"default", warmup, "hit"}, 1);
    metrics.compile_seconds.Observe({"default", warmup}, 1);
    metrics.phase_seconds.Observe({"default", warmup, "init", "hit"}, 1);
    metrics.kv_cache_tokens.Set({"default", warmup, "cpu", "hit"}, 1);
    metrics.pods_held.Set({"default", warmup}, 1);
    metrics.gate_releases.Add({"default", warmup, "ReleasedWarm"});
    metrics.hold_seconds.Observe({"default", warmup}, 1);
    metrics.build_seconds.Observe({"default", warmup, "cpu"}, 1);
    metrics.nodes_waiting.Set({"default", warmup}, 1);
    metrics.suspended_bundles.Set({"default", warmup}, 1);
  }
  metrics.Forget("default", "llama");
  EXPECT_THAT(registry->Serialize(), Not(HasSubstr("llama")));
  EXPECT_THAT(registry->Serialize(), HasSubstr("mistral"));
}

TEST(OperatorMetrics, ForgetWhatOnlyALeaderServes) {
  const auto registry = metrics::MakeRegistry();
  const Metrics metrics = MakeMetrics(*registry, "1");
  metrics.pod_starts.RaiseTo({"default", "llama", "cpu", "hit"}, 1);
  metrics.saved_seconds.RaiseTo({"default", "llama", "cpu"}, 1);
  metrics.lost_seconds.RaiseTo({"default", "llama", "cpu"}, 1);
  metrics.saved_gpu_seconds.RaiseTo({"default", "llama", "cpu"}, 1);
  metrics.lost_gpu_seconds.RaiseTo({"default", "llama", "cpu"}, 1);
  metrics.builder_gpu_seconds.RaiseTo({"default", "llama", "cpu"}, 1);
  metrics.nodes_waiting.Set({"default", "llama"}, 1);
  metrics.suspended_bundles.Set({"default", "llama"}, 1);
  metrics.pods_held.Set({"default", "llama"}, 1);
  metrics.pods_overdue.Set({"default", "llama"}, 1);
  metrics.kv_cache_tokens.Set({"default", "llama", "cpu", "hit"}, 1);
  metrics.gate_releases.Add({"default", "mistral", "ReleasedWarm"});
  metrics.ForgetWarmups();
  EXPECT_THAT(registry->Serialize(), Not(HasSubstr("llama")));
  EXPECT_THAT(registry->Serialize(), HasSubstr("mistral"));
}

}  // namespace
}  // namespace cachewarm::op

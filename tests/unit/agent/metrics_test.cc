// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cachewarm::agent {
namespace {

using ::testing::HasSubstr;

TEST(Metrics, HaveValidNames) {
  const auto registry = metrics::MakeRegistry();
  const Metrics metrics(*registry, "1.2.3");
  EXPECT_TRUE(registry->status().ok()) << registry->status();
  EXPECT_THAT(registry->Serialize(), HasSubstr("cachewarm_build_info{version=\"1.2.3\"} 1"));
}

TEST(Metrics, StoreCallsAreCountedByOperationAndCode) {
  const auto registry = metrics::MakeRegistry();
  Metrics metrics(*registry, "1");
  CountStoreCall(metrics, {.operation = "read_blob", .bytes = 100, .time = Duration(1500)});
  CountStoreCall(metrics, {.operation = "read_blob",
                           .code = absl::StatusCode::kUnavailable,
                           .bytes = 11,
                           .time = Duration(500)});
  const std::string text = registry->Serialize();
  for (const char* line :
       {"cachewarm_store_requests_total{code=\"OK\",operation=\"read_blob\"} 1",
        "cachewarm_store_requests_total{code=\"UNAVAILABLE\",operation=\"read_blob\"} 1",
        "cachewarm_store_bytes_total{operation=\"read_blob\"} 111",
        "cachewarm_store_seconds_sum{operation=\"read_blob\"} 2",
        "cachewarm_store_seconds_count{operation=\"read_blob\"} 2"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace cachewarm::agent

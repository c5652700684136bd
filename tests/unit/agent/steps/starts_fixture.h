// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "agent/steps/start_spans.h"
#include "agent/steps/tables.h"
#include "agent/tree/journal.h"
#include "agent/tree/root_layout.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {

// A node on which pods of kMount's warmup start. Times are in seconds from the begin of the test.
class StartsFixture : public ::testing::Test, protected Workbench {
 protected:
  StartsFixture()
      : context_(ContextWith(workers_)), spans_(context_, tables_), begin_(clock_.Now()) {}

  // Makes an empty tree that was activated at `second`.
  void Activate(const std::string& generation, int second) {
    ASSERT_TRUE(root_.dir().MakeDirs(GenerationPath(generation), kTreeMode).ok());
    ASSERT_TRUE(
        RecordActivation(root_.dir(), kMount,
                         {.generation = generation, .at = begin_ + std::chrono::seconds(second)})
            .ok());
  }
  // The pod has started at `started` and was Ready at `ready`; 0: not yet.
  api::StartWindow Window(const std::string& pod, int started, int ready) const {
    return {.pod_uid = pod,
            .warmup_uid = kMount.uid,
            .run_as = kMount.run_as,
            .started_time = begin_ + std::chrono::seconds(started),
            .ready_time = ready == 0 ? WallTime{} : begin_ + std::chrono::seconds(ready)};
  }
  FileEvent Event(FileEventType type, int second, const std::string& path) const {
    return {.type = type, .time = begin_ + std::chrono::seconds(second), .path = path};
  }
  // The event of a new entry of Inductor.
  FileEvent Compiled(int second, const std::string& name, const std::string& file = "e") const {
    return Event(FileEventType::kMovedTo, second, "inductor/fxgraph/ab/" + name + "/" + file);
  }

  bundle::WorkerPool workers_{1, 1};
  Context context_;
  Tables tables_;
  StartSpans spans_;
  WallTime begin_;
};

}  // namespace cachewarm::agent

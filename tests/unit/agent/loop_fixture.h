// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/loop.h"
#include "agent/tree/links.h"
#include "agent/tree/root_layout.h"
#include "tests/unit/agent/steps/workbench.h"

namespace cachewarm::agent {

// A node whose loop is iterated by the test.
class LoopTest : public ::testing::Test, protected Workbench {
 protected:
  LoopTest() { Restart(); }

  void Restart(LoopOptions options = {.version = "test"}) {
    loop_.reset();
    workers_ = std::make_unique<bundle::WorkerPool>(threads_ + kPublicationWorkers, 16);
    context_ = std::make_unique<Context>(ContextWith(*workers_));
    loop_ = std::make_unique<Loop>(*context_, GpuObservation{.facts = node_}, options,
                                   [this](std::string target, api::NodeCacheStatus status) {
                                     target_ = std::move(target);
                                     status_ = std::move(status);
                                   });
  }

  void Want(const std::vector<Digest>& digests) {
    api::NodeCache node_cache{.name = "node-a", .uid = "nc-1", .spec = spec_};
    api::WantedWarmup warmup{
        .uid = kMount.uid, .ns = kMount.ns, .name = kMount.name, .run_as = {kMount.run_as}};
    for (const Digest& digest : digests) {
      warmup.bundles.push_back({.key = "k", .digest = digest, .bytes = 10});
    }
    warmup.renew = renew_;
    warmup.caches = caches_;
    warmup.harvest = harvests_;
    node_cache.spec.warmups = {warmup};
    loop_->SetDesired(std::make_shared<const api::NodeCache>(node_cache));
  }

  // Iterates until `condition` holds; time does not advance unless the test advances it.
  bool IterateUntil(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline) {
      loop_->RunIteration();
      if (condition()) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  bool IterateUntilActive() {
    return IterateUntil([this] { return Bundle(0).state == api::BundleState::kActive; });
  }
  // Also returns true if the next tree is active already: its fetch may end within an iteration.
  bool IterateUntilNotActive(const std::string& generation) {
    return IterateUntil([&] {
      return Bundle(0).state != api::BundleState::kActive || Warmup().generation != generation;
    });
  }
  bool IterateUntilFailed(size_t bundle = 0) {
    return IterateUntil(
        [this, bundle] { return Bundle(bundle).state == api::BundleState::kFailed; });
  }

  // Puts a file at the path of the staging directory, so that iterations fail.
  void BreakRoot() {
    std::filesystem::remove_all(root_ / std::string(kStaging));
    root_.Write(std::string(kStaging), "x");
  }
  void RepairRoot() { std::filesystem::remove(root_ / std::string(kStaging)); }

  const api::NodeWarmup& Warmup() const { return status_.warmups.at(0); }
  const api::NodeBundle& Bundle(size_t index) const { return Warmup().bundles.at(index); }
  Digest Publish(const std::map<std::string, std::string>& files) {
    return PublishFiles(files)->publication.digest;
  }
  std::map<std::string, std::string> Shown() { return MountedFiles(root_.path(), kMount); }

  // A running pod writes kIndexFile to the tree after it was Ready; iterates until that counts.
  void CompileLate(const std::string& tree) {
    root_.Write(GenerationPath(tree) + "/" + kIndexFile, "late");
    watcher_.SetEvents(tree, {{.type = FileEventType::kMovedTo,
                               .time = clock_.Now() + std::chrono::seconds(5),
                               .path = kIndexFile}});
    for (int i = 0; i < 10; ++i) {
      clock_.Advance(std::chrono::seconds(10));
      loop_->RunIteration();
    }
  }

  int threads_ = 2;  // fetches that Restart() allows at once
  std::unique_ptr<bundle::WorkerPool> workers_;
  std::unique_ptr<Context> context_;
  api::NodeCacheSpec spec_;
  std::vector<api::CacheChoice> caches_;
  int renew_ = 0;
  bool harvests_ = false;
  std::unique_ptr<Loop> loop_;
  std::string target_;
  api::NodeCacheStatus status_;
};

}  // namespace cachewarm::agent

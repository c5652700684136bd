// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/steps/capturing/publication.h"
#include "agent/steps/context.h"
#include "agent/steps/fetching/fetch_generation.h"
#include "agent/sync/tree_names.h"
#include "lib/fingerprint/key.h"
#include "lib/fs/tree.h"
#include "lib/metrics/metrics.h"
#include "tests/fakes/cache_files.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/memory_log.h"
#include "tests/fakes/memory_store.h"
#include "tests/unit/agent/fake_watcher.h"
#include "tests/unit/agent/scratch.h"

namespace cachewarm::agent {

inline const Mount kMount{"team", "llama", "uid-1", "image"};

// Dependencies of steps: a node with a root, a store in memory and a fake clock.
class Workbench {
 public:
  Workbench() : registry_(metrics::MakeRegistry()), metrics_(*registry_, "test") {
    node_.cpu_class = "x86-64-v4/amd-25-17/5c0d9f21";
  }

  api::CaptureRequest Request() const {
    api::CaptureRequest request{.id = "pod-1",
                                .warmup_uid = kMount.uid,
                                .pod_uid = "pod-1",
                                .run_as = kMount.run_as,
                                .factors = {.gpu_type = node_.gpu_type,
                                            .cpu_class = node_.cpu_class,
                                            .image = "llama:1",
                                            .devices = 0,
                                            .container = "server"},
                                .settle_seconds = 2,
                                .started_time = clock_.Now()};
    request.key = *fingerprint::KeyOf(request.factors);
    return request;
  }

  // Publishes a directory of these files as a bundle of kMount's warmup.
  absl::StatusOr<Published> PublishFiles(const std::map<std::string, std::string>& files,
                                         const capture::EngineFactors& factors = {}) {
    const Scratch tree;
    for (const auto& [path, bytes] : files) {
      tree.Write(path, bytes);
    }
    const fs::Dir dir = *fs::Dir::Open(tree.path());
    return PublishTree({.store = store_,
                        .tree = dir,
                        .table = caches::CacheTable::AllPresets(),
                        .node = node_,
                        .request = Request(),
                        .ns = kMount.ns,
                        .name = kMount.name,
                        .used = {.all = true},
                        .engine_factors = factors},
                       {});
  }

  static Fetch FetchOf(const std::vector<Digest>& digests) {
    Fetch fetch{.mount = kMount, .generation = GenerationId(kMount, digests)};
    for (const Digest& digest : digests) {
      fetch.bundles.push_back({.key = "k", .digest = digest, .bytes = 1});
    }
    return fetch;
  }

  FetchJob JobOf(Fetch step) {
    return {.store = store_,
            .root = root_.dir(),
            .table = caches::CacheTable::AllPresets(),
            .clock = clock_,
            .step = std::move(step),
            .gpu_type = node_.gpu_type,
            .cpu_class = node_.cpu_class};
  }

  std::variant<Fetched, FetchFault> RunFetch(const Fetch& step) {
    return FetchGeneration(JobOf(step), {});
  }

  Context ContextWith(
      bundle::WorkerPool& workers, std::function<void()> wake = [] {}) {
    return {.root = root_.dir(),
            .store = store_,
            .watcher = watcher_,
            .workers = workers,
            .clock = clock_,
            .random = [] { return 0.5; },
            .log = log_,
            .metrics = metrics_,
            .node = node_,
            .transfer_threads = 2,
            .keys = keys_,
            .limits = {},
            .wake = std::move(wake)};
  }

  Root root_;
  fakes::FakeClock clock_;
  bundle::MemoryStore store_;
  FakeWatcher watcher_;
  fakes::MemoryLog log_;
  fingerprint::NodeFacts node_;
  bundle::KeyFiles keys_;
  std::unique_ptr<metrics::Registry> registry_;
  Metrics metrics_;
};

}  // namespace cachewarm::agent

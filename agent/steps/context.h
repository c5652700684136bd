// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "agent/evidence/tree_watcher.h"
#include "agent/metrics.h"
#include "lib/base/random.h"
#include "lib/bundle/policy.h"
#include "lib/bundle/signature/keys.h"
#include "lib/bundle/store/store.h"
#include "lib/bundle/worker_pool.h"
#include "lib/fingerprint/node_facts.h"
#include "lib/fs/dir.h"

namespace cachewarm::agent {

// Threads of Context::workers that fetches leave to publications, so that slow fetches never keep a
// builder's cache from being published.
inline constexpr int kPublicationWorkers = 1;

// Dependencies of all steps. Everything referenced outlives the steps.
struct Context {
  const fs::Dir& root;
  bundle::Store& store;
  Watcher& watcher;
  bundle::WorkerPool& workers;  // for long jobs: fetches and publications
  const Clock& clock;
  Random random;
  Log& log;
  Metrics& metrics;
  fingerprint::NodeFacts node;
  int transfer_threads;  // threads of each fetch or publication
  bundle::KeyFiles keys;
  bundle::Limits limits;  // limits of each fetched bundle
  // File with the salt of hashes of engine factors; empty: they are not read.
  std::string factor_salt_file = {};
  // Starts the next iteration of the sync loop immediately. Thread-safe.
  std::function<void()> wake;
};

}  // namespace cachewarm::agent

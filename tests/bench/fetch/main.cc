// SPDX-License-Identifier: Apache-2.0
// bench_fetch [--activate|--durable] ROOT STORE NAMESPACE NAME TAG [OLDER]: fetches a tag like the
// agent, to a complete tree below ROOT. With OLDER, a tag that an earlier run fetched there, it
// updates that tree. With --activate, it also flips the link that pods mount. With --durable, it
// then writes the tree to the disk, as the agent does; it exits after the durable mark is written.
// Prints the path of the tree, the transferred bytes and the reused bytes as JSON; with an option
// also the seconds from its start until the tree was active, with --durable until it was durable.
#include <chrono>
#include <cstdio>
#include <memory>
#include <semaphore>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "agent/evidence/tree_watcher.h"
#include "agent/metrics.h"
#include "agent/steps/context.h"
#include "agent/steps/fetching/durable_trees.h"
#include "agent/steps/fetching/fetch_generation.h"
#include "agent/steps/watched_trees.h"
#include "agent/sync/tree_names.h"
#include "agent/tree/durable.h"
#include "agent/tree/links.h"
#include "agent/tree/root.h"
#include "agent/tree/root_layout.h"
#include "agent/tree/scan.h"
#include "fmt/format.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/bundle/store/open.h"
#include "lib/bundle/worker_pool.h"
#include "lib/gpu/probe.h"
#include "lib/metrics/metrics.h"
#include "lib/probe/node_probe.h"

namespace cachewarm {
namespace {

using Words = std::vector<std::string>;
using SteadyTime = std::chrono::steady_clock::time_point;

enum class Until { kComplete, kActive, kDurable };

double SecondsSince(SteadyTime begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class WarningsToStderr final : public Log {
 public:
  void Write(LogLevel level, std::string_view msg, LogFields fields) override {
    if (level >= LogLevel::kWarning) {
      fmt::print(stderr, "{}\n", LogLine("", level, msg, fields));
    }
  }
};

// The steps of the agent after a fetch, with the agent's own watcher.
class Activation {
 public:
  static absl::StatusOr<std::unique_ptr<Activation>> Make(const fs::Dir& root, bundle::Store& store,
                                                          const fingerprint::NodeFacts& node) {
    auto made = std::unique_ptr<Activation>(new Activation);
    CW_ASSIGN_OR_RETURN(made->watcher_, agent::Watcher::Start({}, SystemClock(), made->log_));
    Activation& parts = *made;
    made->context_.reset(new agent::Context{.root = root,
                                            .store = store,
                                            .watcher = *parts.watcher_,
                                            .workers = parts.workers_,
                                            .clock = SystemClock(),
                                            .random = SystemRandom(),
                                            .log = parts.log_,
                                            .metrics = parts.metrics_,
                                            .node = node,
                                            .transfer_threads = bundle::DefaultThreads(),
                                            .keys = {},
                                            .limits = {},
                                            .wake = [&parts] { parts.woken_.release(); }});
    return made;
  }

  // Flips the link of the mount to the tree.
  absl::Status Activate(const agent::Mount& mount, const std::string& generation) {
    agent::WatchedTrees watched(*context_);
    return agent::ActivateGeneration(context_->root, mount, generation,
                                     {.folders = caches::CacheTable::AllPresets().Directories(),
                                      .now = SystemClock().Now(),
                                      .before_flip = [&](const std::string& tree, bool fresh) {
                                        watched.Add(mount, tree, fresh);
                                      }});
  }

  // Waits until the tree has its durable mark.
  absl::Status WaitUntilDurable(const std::string& generation) {
    agent::DurableTrees trees(*context_);
    CW_ASSIGN_OR_RETURN(const agent::Inventory inventory, agent::ScanInventory(context_->root));
    trees.Update(inventory);
    woken_.acquire();
    trees.Update(inventory);
    return agent::IsDurable(context_->root, generation)
               ? absl::OkStatus()
               : absl::InternalError("the tree has no durable mark");
  }

 private:
  Activation() = default;

  WarningsToStderr log_;
  std::unique_ptr<metrics::Registry> registry_ = metrics::MakeRegistry();
  agent::Metrics metrics_{*registry_, "bench"};
  std::unique_ptr<agent::Watcher> watcher_;
  bundle::WorkerPool workers_{1};
  std::counting_semaphore<> woken_{0};
  std::unique_ptr<agent::Context> context_;
};

absl::StatusOr<agent::Fetch> StepOf(bundle::Store& store, const Words& words) {
  const agent::Mount mount{words[2], words[3], "bench", "image"};
  const std::string repository = fmt::format("{}/{}", mount.ns, mount.name);
  CW_ASSIGN_OR_RETURN(const Digest digest, store.ResolveTag(repository, words[4], {}));
  agent::Fetch step{.mount = mount,
                    .generation = agent::GenerationId(mount, {digest}),
                    .bundles = {{.key = "bench", .digest = digest, .bytes = 0}}};
  if (words.size() > 5) {
    CW_ASSIGN_OR_RETURN(const Digest older, store.ResolveTag(repository, words[5], {}));
    step.sources = {agent::GenerationId(mount, {older})};
  }
  return step;
}

absl::StatusOr<std::string> Run(const Words& words, Until until) {
  const SteadyTime begin = std::chrono::steady_clock::now();
  CW_ASSIGN_OR_RETURN(const fingerprint::NodeFacts node,
                      probe::ProbeNode({}, *gpu::MakeCudaProbe()));
  CW_ASSIGN_OR_RETURN(const fs::Dir root, agent::OpenRoot(words[0]));
  CW_ASSIGN_OR_RETURN(const auto store, bundle::OpenStore({.url = words[1]}, SystemClock()));
  CW_ASSIGN_OR_RETURN(const agent::Fetch step, StepOf(*store, words));
  const auto outcome = agent::FetchGeneration({.store = *store,
                                               .root = root,
                                               .table = caches::CacheTable::AllPresets(),
                                               .clock = SystemClock(),
                                               .step = step,
                                               .gpu_type = node.gpu_type,
                                               .cpu_class = node.cpu_class},
                                              {});
  if (const auto* fault = std::get_if<agent::FetchFault>(&outcome)) {
    return fault->status;
  }
  const auto& fetched = std::get<agent::Fetched>(outcome);
  std::string seconds;
  if (until != Until::kComplete) {
    CW_ASSIGN_OR_RETURN(const auto activation, Activation::Make(root, *store, node));
    CW_RETURN_IF_ERROR(activation->Activate(step.mount, step.generation));
    seconds = fmt::format(R"(,"activeSeconds":{:.4f})", SecondsSince(begin));
    if (until == Until::kDurable) {
      CW_RETURN_IF_ERROR(activation->WaitUntilDurable(step.generation));
      seconds += fmt::format(R"(,"durableSeconds":{:.4f})", SecondsSince(begin));
    }
  }
  return fmt::format(R"({{"tree":"{}/{}","movedBytes":{},"reusedBytes":{}{}}})", words[0],
                     agent::GenerationPath(step.generation), fetched.packed_bytes,
                     fetched.reused_bytes, seconds);
}

// Removes the option from the words.
Until TakeOption(Words& words) {
  const std::string first = words.empty() ? "" : words.front();
  const Until until = first == "--durable"    ? Until::kDurable
                      : first == "--activate" ? Until::kActive
                                              : Until::kComplete;
  if (until != Until::kComplete) {
    words.erase(words.begin());
  }
  return until;
}

int Main(Words words) {
  const Until until = TakeOption(words);
  if (words.size() != 5 && words.size() != 6) {
    std::fputs("usage: bench_fetch [--activate|--durable] ROOT STORE NAMESPACE NAME TAG [OLDER]\n",
               stderr);
    return 2;
  }
  const absl::StatusOr<std::string> report = Run(words, until);
  std::puts(report.ok() ? report->c_str() : Message(report.status()).c_str());
  return report.ok() ? 0 : 1;
}

}  // namespace
}  // namespace cachewarm

int main(int argc, char** argv) {
  return cachewarm::Main({argv + 1, argv + argc});
}

// SPDX-License-Identifier: Apache-2.0
// bench_fetch ROOT STORE NAMESPACE NAME TAG [OLDER]: fetches a tag like the agent, to a complete
// tree below ROOT. With OLDER, a tag that an earlier run fetched there, it updates that tree.
// Prints the path of the tree, the transferred bytes and the reused bytes as JSON.
#include <cstdio>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "agent/steps/fetching/fetch_generation.h"
#include "agent/tree/root.h"
#include "agent/tree/root_layout.h"
#include "fmt/format.h"
#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/bundle/store/open.h"
#include "lib/gpu/probe.h"
#include "lib/probe/node_probe.h"

namespace cachewarm {
namespace {

using Words = std::vector<std::string>;

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

absl::StatusOr<std::string> Run(const Words& words) {
  CW_ASSIGN_OR_RETURN(const fingerprint::NodeFacts node,
                      probe::ProbeNode({}, *gpu::MakeCudaProbe()));
  CW_ASSIGN_OR_RETURN(const fs::Dir root, agent::OpenRoot(words[0]));
  CW_ASSIGN_OR_RETURN(const auto store, bundle::OpenStore({.url = words[1]}, SystemClock()));
  CW_ASSIGN_OR_RETURN(agent::Fetch step, StepOf(*store, words));
  const std::string tree = fmt::format("{}/{}", words[0], agent::GenerationPath(step.generation));
  const auto outcome = agent::FetchGeneration({.store = *store,
                                               .root = root,
                                               .table = caches::CacheTable::AllPresets(),
                                               .clock = SystemClock(),
                                               .step = std::move(step),
                                               .gpu_type = node.gpu_type,
                                               .cpu_class = node.cpu_class},
                                              {});
  if (const auto* fault = std::get_if<agent::FetchFault>(&outcome)) {
    return fault->status;
  }
  const auto& fetched = std::get<agent::Fetched>(outcome);
  return fmt::format(R"({{"tree":"{}","movedBytes":{},"reusedBytes":{}}})", tree,
                     fetched.packed_bytes, fetched.reused_bytes);
}

}  // namespace
}  // namespace cachewarm

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() != 5 && words.size() != 6) {
    std::fputs("usage: bench_fetch ROOT STORE NAMESPACE NAME TAG [OLDER]\n", stderr);
    return 2;
  }
  const absl::StatusOr<std::string> report = cachewarm::Run(words);
  std::puts(report.ok() ? report->c_str() : cachewarm::Message(report.status()).c_str());
  return report.ok() ? 0 : 1;
}

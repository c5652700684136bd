// SPDX-License-Identifier: Apache-2.0
#include "lib/capture/bundle_parts.h"

#include <algorithm>
#include <set>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/capture/stable_file.h"
#include "lib/fingerprint/gpu_type.h"

namespace cachewarm::capture {

bundle::Facts FactsOf(const BundleOrigin& maker, const Selection& selection) {
  const auto& [key, factors, node] = maker;
  bundle::Facts facts;
  facts.architecture = node.cpu.architecture == "aarch64" ? "arm64" : "amd64";
  facts.key = key;
  facts.factors = {{"gpuType", factors.gpu_type},
                   {"cpuClass", factors.cpu_class},
                   {"image", factors.image},
                   {"devices", fmt::format("{}", factors.devices)},
                   {"container", factors.container}};
  facts.node = {{"gpuType", node.gpu_type},
                {"cpuClass", node.cpu_class},
                {"driver", node.driver_version},
                {"cpuFlags", fmt::format("{}", fmt::join(node.cpu.flags, " "))}};
  // On a node without a GPU, every kernel is code for the CPU, even if no file was recognized as
  // such.
  facts.requires_cpu_class = selection.native || factors.gpu_type == fingerprint::kCpuOnly;
  facts.engines = selection.engines;
  facts.gpu_architectures = selection.gpu_architectures;
  facts.compile_milliseconds = static_cast<int64_t>(selection.compile_time.Seconds() * 1000);
  return facts;
}

bundle::Facts UniteFacts(bundle::Facts kept, const bundle::Facts& newer) {
  kept.requires_cpu_class = kept.requires_cpu_class || newer.requires_cpu_class;
  std::set<std::string> architectures(kept.gpu_architectures.begin(), kept.gpu_architectures.end());
  architectures.insert(newer.gpu_architectures.begin(), newer.gpu_architectures.end());
  kept.gpu_architectures.assign(architectures.begin(), architectures.end());
  kept.engines.insert(newer.engines.begin(), newer.engines.end());
  kept.compile_milliseconds = std::max(kept.compile_milliseconds, newer.compile_milliseconds);
  return kept;
}

std::vector<bundle::PackFile> PackFilesOf(const Selection& selection, const ReadOptions& reading) {
  std::vector<bundle::PackFile> files;
  files.reserve(selection.files.size());
  for (const TreeFile& file : selection.files) {
    files.push_back({.path = file.path,
                     .kind = file.placement.cache,
                     .bytes = file.stat.bytes,
                     .mtime_ns = file.placement.keep_mtime ? file.stat.mtime_ns : 0,
                     .open = [reading, path = file.path, chosen = file.stat] {
                       return OpenStable({.tree = reading.tree,
                                          .path = path,
                                          .expected = chosen,
                                          .on_opening = reading.on_opening,
                                          .detect_writers = reading.detect_writers});
                     }});
  }
  return files;
}

}  // namespace cachewarm::capture

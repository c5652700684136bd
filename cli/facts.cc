// SPDX-License-Identifier: Apache-2.0
#include "cli/facts.h"

#include <array>
#include <chrono>
#include <utility>

#include "lib/base/status.h"
#include "lib/bundle/store/key_tag.h"
#include "lib/capture/bundle_parts.h"
#include "lib/gpu/probe.h"
#include "lib/probe/isolated_probe.h"
#include "lib/probe/node_probe.h"

namespace cachewarm::cli {
namespace {

constexpr int kDevicesMax = 1024;
// The driver of a GPU without persistence mode may take 10 seconds to start.
constexpr std::chrono::seconds kProbeDeadline(30);

}  // namespace

std::span<const Option> MachineOptionList() {
  static constexpr std::array<Option, 4> kOptions = {{
      {.name = "image",
       .value = "NAME",
       .help = "container image, part of the cache key (default: local)"},
      {.name = "container",
       .value = "NAME",
       .help = "container name, part of the cache key (default: main)"},
      {.name = "devices",
       .value = "N",
       .help = "number of GPUs, part of the cache key (default: all of this machine)",
       .range = Range{0, kDevicesMax}},
      {.name = "node-facts",
       .value = "FILE",
       .help = "JSON or YAML file with GPU type and CPU class (default: this machine)"},
  }};
  return kOptions;
}

absl::StatusOr<Machine> FindMachine(const Arguments& arguments, EngineVersions engines) {
  Machine machine{.engines = std::move(engines)};
  const probe::NodeProbeOptions options{.facts_file = arguments.Value("node-facts")};
  probe::IsolatedProbe isolated([&options] { return probe::ProbeNode(options, *gpu::MakeProbe()); },
                                kProbeDeadline);
  CW_ASSIGN_OR_RETURN(machine.facts, isolated.Run());
  machine.factors = {.gpu_type = machine.facts.gpu_type,
                     .cpu_class = machine.facts.cpu_class,
                     .image = arguments.Value("image", ImageOf(machine.engines)),
                     .container = arguments.Value("container", "main")};
  machine.factors.devices =
      static_cast<int>(arguments.Number("devices", machine.facts.device_count));
  CW_ASSIGN_OR_RETURN(machine.key, fingerprint::KeyOf(machine.factors));
  return machine;
}

std::string TagOf(const Machine& machine) {
  return bundle::KeyTagOf(machine.key);
}

bundle::Facts FactsOf(const Machine& machine, const Collection& collection) {
  bundle::Facts facts =
      capture::FactsOf({.key = machine.key, .factors = machine.factors, .node = machine.facts},
                       collection.selection);
  for (const auto& [engine, version] : machine.engines) {
    facts.engines[engine] = version;
  }
  return facts;
}

}  // namespace cachewarm::cli

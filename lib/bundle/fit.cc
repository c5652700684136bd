// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/fit.h"

#include <string>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "lib/fingerprint/fit.h"
#include "lib/fingerprint/gpu_code.h"

namespace cachewarm::bundle {

absl::Status CheckFit(const Bundle& bundle, std::string_view gpu_type, std::string_view cpu_class) {
  const auto factor = [&](const char* name) {
    const auto found = bundle.config.facts.factors.find(name);
    return found == bundle.config.facts.factors.end() ? std::string() : found->second;
  };
  fingerprint::BundleFacts facts;
  facts.factors.gpu_type = factor("gpuType");
  facts.factors.cpu_class = factor("cpuClass");
  facts.native_host_code = bundle.config.facts.requires_cpu_class;
  if (!fingerprint::FitsNode(facts, gpu_type, cpu_class)) {
    return absl::InvalidArgumentError(fmt::format(
        "bundle {} was built for GPU type {} and CPU class {}, but this node is {} and {}",
        bundle.digest.Short(), facts.factors.gpu_type, facts.factors.cpu_class, gpu_type,
        cpu_class));
  }
  const std::vector<std::string>& code = bundle.config.facts.gpu_architectures;
  if (!fingerprint::HasCodeFor(code, gpu_type)) {
    return absl::InvalidArgumentError(
        fmt::format("bundle {} names GPU type {} but has GPU code only for {}, and a node of that "
                    "type runs code "
                    "for {}; build the bundle again on such a node",
                    bundle.digest.Short(), gpu_type, fmt::join(code, ", "),
                    fmt::join(fingerprint::ArchitecturesOf(gpu_type), ", ")));
  }
  return absl::OkStatus();
}

}  // namespace cachewarm::bundle

// SPDX-License-Identifier: Apache-2.0
#include "lib/bundle/fit.h"

#include <string>

#include "fmt/format.h"
#include "lib/fingerprint/fit.h"

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
  return absl::OkStatus();
}

}  // namespace cachewarm::bundle

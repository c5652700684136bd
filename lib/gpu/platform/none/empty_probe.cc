// SPDX-License-Identifier: Apache-2.0
#include "lib/gpu/probe.h"

namespace cachewarm::gpu {
namespace {

class EmptyProbe final : public Probe {
 public:
  absl::StatusOr<Devices> Run() override {
    return Devices{.devices = {}, .driver_version = {}, .source = "none"};
  }
};

}  // namespace

std::unique_ptr<Probe> MakeEmptyProbe() {
  return std::make_unique<EmptyProbe>();
}

}  // namespace cachewarm::gpu

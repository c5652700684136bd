// SPDX-License-Identifier: Apache-2.0
#include "lib/api/accelerators.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "lib/api/kubernetes.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::api {

using codec::Json;

namespace {

constexpr int kAcceleratorsMax = 1024;

}  // namespace

bool IsAccelerator(std::string_view resource) {
  const size_t slash = resource.find('/');
  if (slash == std::string_view::npos) {
    return false;
  }
  const std::string_view domain = resource.substr(0, slash);
  const std::string_view name = resource.substr(slash + 1);
  static constexpr std::string_view kPrefixes[] = {"gpu", "mig-", "tpu", "neuron", "gaudi"};
  return domain == "gpu.intel.com" ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

int AcceleratorsOf(const Json& container) {
  int64_t sum = 0;
  for (const auto& [name, amount] : ContainerRequests(container)) {
    if (IsAccelerator(name)) {
      sum += std::clamp<int64_t>(amount, 0, kAcceleratorsMax);
    }
  }
  if (sum == 0) {
    sum = static_cast<int64_t>(codec::ListAt(container, {"resources", "claims"}).size());
  }
  return static_cast<int>(std::min<int64_t>(sum, kAcceleratorsMax));
}

}  // namespace cachewarm::api

// SPDX-License-Identifier: Apache-2.0
#include "operator/annotations/warmup_name.h"

#include <algorithm>

namespace cachewarm::annotations {
namespace {

constexpr size_t kNameMax = 45;

}  // namespace

std::string WarmupName(std::string_view workload) {
  std::string name(workload.substr(0, kNameMax));
  std::replace(name.begin(), name.end(), '.', '-');
  while (!name.empty() && name.back() == '-') {
    name.pop_back();
  }
  return name;
}

}  // namespace cachewarm::annotations

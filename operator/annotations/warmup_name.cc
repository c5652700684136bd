// SPDX-License-Identifier: Apache-2.0
#include "operator/annotations/warmup_name.h"

#include <algorithm>

#include "lib/base/digest.h"

namespace cachewarm::annotations {
namespace {

constexpr size_t kNameMax = 45;
constexpr size_t kHashBytes = 8;

}  // namespace

std::string WarmupName(std::string_view workload) {
  const bool is_cut = workload.size() > kNameMax;
  std::string name(workload.substr(0, is_cut ? kNameMax - kHashBytes - 1 : kNameMax));
  std::replace(name.begin(), name.end(), '.', '-');
  while (!name.empty() && name.back() == '-') {
    name.pop_back();
  }
  return is_cut ? name + "-" + DigestOf(workload).hex().substr(0, kHashBytes) : name;
}

}  // namespace cachewarm::annotations

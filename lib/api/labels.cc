// SPDX-License-Identifier: Apache-2.0
#include "lib/api/labels.h"

#include <algorithm>

namespace cachewarm::api {

bool HasLabels(const Labels& labels, const Labels::Texts& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& each) {
    const auto found = labels.find(each.first);
    return found != labels.end() && found->second == each.second;
  });
}

}  // namespace cachewarm::api

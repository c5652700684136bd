// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lib/codec/json.h"

namespace cachewarm::fakes {

// Returns copies of `whole`, each with one value replaced by one of another type.
inline std::vector<codec::Json> OfWrongTypes(const codec::Json& whole) {
  using codec::Json;
  std::vector<Json> out;
  const Json flat = whole.flatten();
  for (const auto& [path, leaf] : flat.items()) {
    for (Json::json_pointer at(path); !at.empty(); at.pop_back()) {
      for (const Json& wrong : {Json("x"), Json(7), Json(true), Json(), Json::array({"x"}),
                                Json::array({Json()}), Json{{"x", "y"}}}) {
        out.push_back(whole);
        out.back()[at] = wrong;
      }
    }
  }
  return out;
}

}  // namespace cachewarm::fakes

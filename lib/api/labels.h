// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>

namespace cachewarm::api {

// The labels or annotations of an object, sorted by name. find() takes any kind of text.
class Labels : public std::map<std::string, std::string, std::less<>> {
 public:
  using Texts = std::map<std::string, std::string>;

  using map::map;
  // Implicit, so that a map can be passed.
  Labels(const Texts& texts) : map(texts.begin(), texts.end()) {}  // NOLINT(*-explicit-*)

  Texts AsMap() const { return {begin(), end()}; }
};

// True if `labels` contains every entry of `wanted` (matchLabels, nodeSelector).
bool HasLabels(const Labels& labels, const Labels::Texts& wanted);

}  // namespace cachewarm::api

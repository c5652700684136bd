// SPDX-License-Identifier: Apache-2.0
#include "operator/render/affinity.h"

#include <algorithm>

#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::render {

using codec::Json;

namespace {

Json Requirement(const char* op, const std::vector<std::string>& hostnames, size_t most) {
  const size_t count = std::min(hostnames.size(), most);
  return {{"key", "kubernetes.io/hostname"},
          {"operator", op},
          {"values", std::vector<std::string>(hostnames.begin(),
                                              hostnames.begin() + static_cast<ptrdiff_t>(count))}};
}

void AddOnce(Json& list, const Json& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) {
    list.push_back(value);
  }
}

void Require(Json& node_affinity, const Json& requirement) {
  Json& required =
      codec::MakeObject(node_affinity, "requiredDuringSchedulingIgnoredDuringExecution");
  Json& terms = codec::MakeList(required, "nodeSelectorTerms");
  if (terms.empty()) {
    terms.push_back(Json::object());
  }
  for (Json& term : terms) {
    if (term.is_object()) {  // skips invalid terms; the API server rejects them
      AddOnce(codec::MakeList(term, "matchExpressions"), requirement);
    }
  }
}

}  // namespace

Json WithHostRules(const Json& affinity, const HostRules& rules) {
  Json out = affinity.is_object() ? affinity : Json::object();
  if (rules.required.empty() && rules.excluded.empty() && rules.preferred.empty()) {
    return out;
  }
  Json& node_affinity = codec::MakeObject(out, "nodeAffinity");
  if (!rules.required.empty()) {
    Require(node_affinity, Requirement("In", rules.required, kRequiredMax));
  }
  if (!rules.excluded.empty()) {
    Require(node_affinity, Requirement("NotIn", rules.excluded, kRequiredMax));
  }
  if (!rules.preferred.empty()) {
    const Json preference = {
        {"weight", kPreferenceWeight},
        {"preference",
         {{"matchExpressions", Json::array({Requirement("In", rules.preferred, kPreferredMax)})}}}};
    AddOnce(codec::MakeList(node_affinity, "preferredDuringSchedulingIgnoredDuringExecution"),
            preference);
  }
  return out;
}

Json WithHostRules(const api::Pod& pod, const HostRules& rules) {
  const Json* affinity =
      pod.object == nullptr ? nullptr : codec::At(*pod.object, {"spec", "affinity"});
  return WithHostRules(affinity != nullptr ? *affinity : Json(), rules);
}

}  // namespace cachewarm::render

// SPDX-License-Identifier: Apache-2.0
#include "operator/wishes/wanted.h"

#include <algorithm>

#include "lib/api/names.h"
#include "lib/base/digest.h"
#include "lib/codec/json.h"
#include "lib/kube/core/object.h"

namespace cachewarm::wishes {
namespace {

using codec::Json;

bool Contains(const Json& present, const Json& wanted) {
  if (wanted.is_object()) {
    for (const auto& [name, value] : wanted.items()) {
      const auto found = present.is_object() ? present.find(name) : present.end();
      if (!present.is_object() || found == present.end() || !Contains(*found, value)) {
        return false;
      }
    }
    return true;
  }
  if (wanted.is_array()) {
    return present.is_array() && std::all_of(wanted.begin(), wanted.end(), [&](const Json& item) {
             return std::any_of(present.begin(), present.end(),
                                [&](const Json& each) { return Contains(each, item); });
           });
  }
  return present == wanted;
}

Json OwnerOf(const Asked& asked) {
  return {{"apiVersion", asked.api_version},
          {"kind", asked.kind},
          {"name", asked.name},
          {"uid", asked.uid},
          {"controller", true}};
}

}  // namespace

Json Wanted(const Asked& asked, const Json& spec, const std::string& uid) {
  Json whole = spec;
  if (asked.selector.empty()) {
    whole["workloadRef"] = {
        {"apiVersion", asked.api_version}, {"kind", asked.kind}, {"name", asked.name}};
  } else {
    whole["selector"]["matchLabels"] = asked.selector;
  }
  const std::string digest = DigestOf(codec::DumpJson(whole)).Short();
  Json metadata = {{"namespace", asked.ns},
                   {"name", asked.warmup},
                   {"annotations", {{std::string(api::kWishAnnotation), digest}}},
                   {"ownerReferences", Json::array({OwnerOf(asked)})}};
  if (!uid.empty()) {
    metadata["uid"] = uid;
  }
  return {{"metadata", std::move(metadata)}, {"spec", std::move(whole)}};
}

bool Holds(const Json& present, const Json& wanted) {
  const auto digest = {std::string_view("metadata"), std::string_view("annotations"),
                       std::string_view(api::kWishAnnotation)};
  const Json* spec = kube::At(present, {"spec"});
  return kube::TextAt(present, digest) == kube::TextAt(wanted, digest) && spec != nullptr &&
         Contains(*spec, wanted["spec"]);
}

}  // namespace cachewarm::wishes

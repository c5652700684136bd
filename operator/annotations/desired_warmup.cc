// SPDX-License-Identifier: Apache-2.0
#include "operator/annotations/desired_warmup.h"

#include <algorithm>

#include "lib/api/names.h"
#include "lib/base/digest.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/kube/core/object.h"

namespace cachewarm::annotations {
namespace {

using codec::Json;

bool Contains(const Json& present, const Json& desired) {
  if (desired.is_object()) {
    for (const auto& [name, value] : desired.items()) {
      const auto found = present.is_object() ? present.find(name) : present.end();
      if (!present.is_object() || found == present.end() || !Contains(*found, value)) {
        return false;
      }
    }
    return true;
  }
  if (desired.is_array()) {
    return present.is_array() && std::all_of(desired.begin(), desired.end(), [&](const Json& item) {
             return std::any_of(present.begin(), present.end(),
                                [&](const Json& each) { return Contains(each, item); });
           });
  }
  return present == desired;
}

Json OwnerOf(const AnnotationRequest& request) {
  // A CacheWarmup that an earlier version of the operator created keeps its Job as its owner: a
  // second controller would be invalid.
  const bool is_owned_by_job = request.present != nullptr && !request.uid.empty() &&
                               kube::ControllerOf(*request.present).uid == request.uid;
  if (request.kind == "Job" && !is_owned_by_job) {
    return {{"apiVersion", "v1"},
            {"kind", "Namespace"},
            {"name", request.ns},
            {"uid", request.ns_uid},
            {"controller", true}};
  }
  return {{"apiVersion", request.api_version},
          {"kind", request.kind},
          {"name", request.name},
          {"uid", request.uid},
          {"controller", true}};
}

}  // namespace

Json DesiredWarmup(const AnnotationRequest& request, const Json& spec, const std::string& uid) {
  Json full = spec;
  full["workloadRef"] = {
      {"apiVersion", request.api_version}, {"kind", request.kind}, {"name", request.name}};
  const std::string digest = DigestOf(codec::DumpJson(full)).Short();
  Json metadata = {{"namespace", request.ns},
                   {"name", request.warmup},
                   {"annotations", {{std::string(api::kRequestedSpecAnnotation), digest}}},
                   {"ownerReferences", Json::array({OwnerOf(request)})}};
  if (!uid.empty()) {
    metadata["uid"] = uid;
  }
  return {{"metadata", std::move(metadata)}, {"spec", std::move(full)}};
}

bool IsUpToDate(const Json& present, const Json& desired) {
  const auto digest = {std::string_view("metadata"), std::string_view("annotations"),
                       std::string_view(api::kRequestedSpecAnnotation)};
  const Json* spec = codec::At(present, {"spec"});
  return codec::TextAt(present, digest) == codec::TextAt(desired, digest) && spec != nullptr &&
         Contains(*spec, desired["spec"]);
}

}  // namespace cachewarm::annotations

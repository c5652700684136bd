// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/core/object.h"

#include "fmt/format.h"
#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

std::string Text(const Json& object, std::string_view member) {
  return codec::TextAt(object, {"metadata", member});
}

}  // namespace

absl::StatusOr<ObjectName> ObjectName::Parse(std::string_view key) {
  const size_t slash = key.find('/');
  const bool has_ns = slash != std::string_view::npos;
  const std::string_view name = has_ns ? key.substr(slash + 1) : key;
  if (name.empty() || (has_ns && slash == 0) || name.find('/') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not the name of an object: expected name or namespace/name", key));
  }
  return ObjectName{.ns = std::string(has_ns ? key.substr(0, slash) : ""),
                    .name = std::string(name)};
}

ObjectName NameOf(const Json& object) {
  return {.ns = Text(object, "namespace"), .name = Text(object, "name")};
}

std::string UidOf(const Json& object) {
  return Text(object, "uid");
}

std::string ResourceVersionOf(const Json& object) {
  return Text(object, "resourceVersion");
}

std::map<std::string, std::string> LabelsOf(const Json& object) {
  return codec::Texts(codec::At(object, {"metadata", "labels"}));
}

std::map<std::string, std::string> AnnotationsOf(const Json& object) {
  return codec::Texts(codec::At(object, {"metadata", "annotations"}));
}

bool IsDeleting(const Json& object) {
  return !Text(object, "deletionTimestamp").empty();
}

Owner ControllerOf(const Json& object) {
  for (const Json& owner : codec::ListAt(object, {"metadata", "ownerReferences"})) {
    if (codec::FlagAt(owner, {"controller"})) {
      return {.api_version = codec::TextAt(owner, {"apiVersion"}),
              .kind = codec::TextAt(owner, {"kind"}),
              .name = codec::TextAt(owner, {"name"}),
              .uid = codec::TextAt(owner, {"uid"})};
    }
  }
  return {};
}

}  // namespace cachewarm::kube

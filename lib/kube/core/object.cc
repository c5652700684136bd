// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/core/object.h"

#include "fmt/format.h"
#include "lib/codec/json.h"
#include "lib/codec/json_value.h"

namespace cachewarm::kube {
namespace {

using codec::Json;

std::string Text(const Json& object, std::string_view member) {
  return TextAt(object, {"metadata", member});
}

bool IsController(const Json& owner) {
  const Json* controller = At(owner, {"controller"});
  return controller != nullptr && controller->is_boolean() && controller->get<bool>();
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

const Json* At(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* at = &object;
  for (const std::string_view member : path) {
    if (!at->is_object()) {
      return nullptr;
    }
    const auto found = at->find(std::string(member));
    if (found == at->end()) {
      return nullptr;
    }
    at = &*found;
  }
  return at;
}

std::string TextAt(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* at = At(object, path);
  return at != nullptr && at->is_string() ? at->get<std::string>() : std::string();
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
  return codec::Texts(At(object, {"metadata", "labels"}));
}

std::map<std::string, std::string> AnnotationsOf(const Json& object) {
  return codec::Texts(At(object, {"metadata", "annotations"}));
}

bool IsDeleting(const Json& object) {
  return !Text(object, "deletionTimestamp").empty();
}

Owner ControllerOf(const Json& object) {
  const Json* owners = At(object, {"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array()) {
    return {};
  }
  for (const Json& owner : *owners) {
    if (IsController(owner)) {
      return {.api_version = TextAt(owner, {"apiVersion"}),
              .kind = TextAt(owner, {"kind"}),
              .name = TextAt(owner, {"name"}),
              .uid = TextAt(owner, {"uid"})};
    }
  }
  return {};
}

}  // namespace cachewarm::kube

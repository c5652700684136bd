// SPDX-License-Identifier: Apache-2.0
#include "operator/render/strategic_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "lib/base/status.h"
#include "lib/codec/json_value.h"

namespace cachewarm::render {

using codec::Json;

namespace {

constexpr const char* kPatch = "$patch";
constexpr const char* kRetainKeys = "$retainKeys";

// The patchMergeKey of each PodSpec list with patchStrategy merge (k8s.io api core/v1 types.go).
// Lists of the same name have the same key, so the name is sufficient to find the key.
struct MergedList {
  std::string_view list;
  const char* key;
};
constexpr MergedList kMergedLists[] = {
    {"containers", "name"},
    {"env", "name"},
    {"hostAliases", "ip"},
    {"imagePullSecrets", "name"},
    {"initContainers", "name"},
    {"ports", "containerPort"},
    {"resourceClaims", "name"},
    {"topologySpreadConstraints", "topologyKey"},
    {"volumeDevices", "devicePath"},
    {"volumeMounts", "mountPath"},
    {"volumes", "name"},
};

// Maximum elements of a list in a patch. Bounds the time of merging, which is quadratic in this
// number.
constexpr size_t kElementsMax = 256;

const char* MergeKeyOf(std::string_view list) {
  const auto* found = std::find_if(std::begin(kMergedLists), std::end(kMergedLists),
                                   [&](const MergedList& each) { return each.list == list; });
  return found == std::end(kMergedLists) ? nullptr : found->key;
}

absl::Status InvalidPatch(const std::string& path, std::string_view problem) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", path, problem));
}

// Returns the object's directive "$patch": "replace", "delete", or "" if it has none.
absl::StatusOr<std::string> DirectiveOf(const Json& patch, const std::string& path) {
  const auto found = patch.find(kPatch);
  if (found == patch.end()) {
    return std::string();
  }
  if (*found != "replace" && *found != "delete") {
    return InvalidPatch(path + "." + kPatch, "expected replace or delete");
  }
  return found->get<std::string>();
}

absl::Status MergeObject(Json& target, const Json& patch, const std::string& path);

// Returns the result of a patch applied to an absent value, without the `$patch` directives.
absl::StatusOr<Json> ApplyToAbsent(const Json& patch, const std::string& path) {
  Json made = Json::object();
  CW_RETURN_IF_ERROR(MergeObject(made, patch, path));
  return made;
}

absl::Status RetainKeys(Json& target, const Json& patch, const std::string& path) {
  const auto kept = patch.find(kRetainKeys);
  if (kept == patch.end()) {
    return absl::OkStatus();
  }
  if (!kept->is_array()) {
    return InvalidPatch(path + "." + kRetainKeys, "expected a list of names");
  }
  Json remaining = Json::object();
  for (auto& [name, value] : target.items()) {
    if (std::find(kept->begin(), kept->end(), Json(name)) != kept->end()) {
      remaining[name] = std::move(value);
    }
  }
  target = std::move(remaining);
  return absl::OkStatus();
}

absl::Status MergeElement(Json& list, const Json& element, const char* key,
                          const std::string& path) {
  const auto value = element.find(key);
  if (value == element.end() || value->is_null()) {
    return InvalidPatch(
        path, fmt::format("{} is required, because elements of this list are merged by it", key));
  }
  CW_ASSIGN_OR_RETURN(const std::string directive, DirectiveOf(element, path));
  const auto present = std::find_if(list.begin(), list.end(), [&](const Json& each) {
    return each.is_object() && each.contains(key) && each[key] == *value;
  });
  if (directive == "delete") {
    if (present != list.end()) {
      list.erase(present);
    }
    return absl::OkStatus();
  }
  if (present != list.end()) {
    return MergeObject(*present, element, path);
  }
  CW_ASSIGN_OR_RETURN(Json made, ApplyToAbsent(element, path));
  list.push_back(std::move(made));
  return absl::OkStatus();
}

absl::Status MergeList(Json& list, const Json& patch, const char* key, const std::string& path) {
  if (patch.size() > kElementsMax) {
    return InvalidPatch(path, fmt::format("has more than {} elements; use fewer", kElementsMax));
  }
  // An element with only "$patch: replace" applies to the whole list.
  const Json replace = {{kPatch, "replace"}};
  if (std::find(patch.begin(), patch.end(), replace) != patch.end()) {
    list = Json::array();
  }
  for (size_t i = 0; i < patch.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", path, i);
    if (patch[i] == replace) {
      continue;
    }
    if (!patch[i].is_object()) {
      return InvalidPatch(place, "expected an object");
    }
    CW_RETURN_IF_ERROR(MergeElement(list, patch[i], key, place));
  }
  return absl::OkStatus();
}

absl::Status MergeMember(Json& target, const std::string& name, const Json& patch,
                         const std::string& path) {
  const auto present = target.find(name);
  const bool is_there = present != target.end() && !present->is_null();
  if (patch.is_null()) {
    target.erase(name);
    return absl::OkStatus();
  }
  if (is_there && present->type() != patch.type() &&
      (present->is_structured() || patch.is_structured())) {
    return InvalidPatch(path, fmt::format("expected {} {}", present->is_structured() ? "an" : "a",
                                          present->type_name()));
  }
  if (patch.is_object()) {
    CW_ASSIGN_OR_RETURN(const std::string directive, DirectiveOf(patch, path));
    if (directive == "delete") {
      target.erase(name);
      return absl::OkStatus();
    }
    Json& member = target[name];
    if (!is_there) {
      member = Json::object();
    }
    return MergeObject(member, patch, path);
  }
  const char* key = patch.is_array() ? MergeKeyOf(name) : nullptr;
  if (key == nullptr) {
    target[name] = patch;
    return absl::OkStatus();
  }
  Json& list = target[name];
  if (!is_there) {
    list = Json::array();
  }
  return MergeList(list, patch, key, path);
}

absl::Status MergeObject(Json& target, const Json& patch, const std::string& path) {
  CW_ASSIGN_OR_RETURN(const std::string directive, DirectiveOf(patch, path));
  if (directive == "replace") {
    target = Json::object();
  }
  for (const auto& [name, value] : patch.items()) {
    const std::string place = path.empty() ? name : fmt::format("{}.{}", path, name);
    if (name == kPatch || name == kRetainKeys) {
      continue;
    }
    if (name.starts_with('$')) {
      return InvalidPatch(place, "unsupported directive; use $patch or $retainKeys");
    }
    CW_RETURN_IF_ERROR(MergeMember(target, name, value, place));
  }
  return RetainKeys(target, patch, path);
}

}  // namespace

absl::Status MergeStrategically(Json& target, const Json& patch) {
  if (!patch.is_object()) {
    return absl::InvalidArgumentError("expected an object");
  }
  CW_ASSIGN_OR_RETURN(const std::string directive, DirectiveOf(patch, ""));
  if (!directive.empty()) {
    return InvalidPatch(kPatch, "cannot be used at the top level, only inside metadata or spec");
  }
  return MergeObject(target, patch, "");
}

}  // namespace cachewarm::render

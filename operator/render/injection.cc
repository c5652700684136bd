// SPDX-License-Identifier: Apache-2.0
#include "operator/render/injection.h"

#include <algorithm>

#include "lib/api/names.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::render {

using codec::Json;

namespace {

std::optional<int64_t> RunAsUser(const Json& holder) {
  const Json* user = codec::At(holder, {"securityContext", "runAsUser"});
  if (user == nullptr || !user->is_number_integer()) {
    return std::nullopt;
  }
  return user->get<int64_t>();
}

}  // namespace

std::string RunAs(const Json& pod_spec, std::string_view container) {
  const Json* found = codec::Named(codec::ListAt(pod_spec, {"containers"}), container);
  if (found != nullptr) {
    if (const auto user = RunAsUser(*found)) {
      return api::RunAsName(user);
    }
  }
  return api::RunAsName(RunAsUser(pod_spec));
}

void SetEnv(const std::vector<api::EnvVar>& variables, Json& container) {
  Json& env = codec::MakeList(container, "env");
  for (const api::EnvVar& variable : variables) {
    const Json entry = {{"name", variable.name}, {"value", variable.value}};
    if (Json* present = codec::Named(env, variable.name)) {
      *present = entry;
    } else {
      env.push_back(entry);
    }
  }
}

void AddMount(Json& pod_spec, const CacheMount& mount) {
  Json* container = codec::Named(codec::MakeList(pod_spec, "containers"), mount.container);
  if (container == nullptr) {
    return;
  }
  const Json volume = {{"name", std::string(api::kVolume)},
                       {"hostPath", {{"path", mount.host_path}, {"type", "DirectoryOrCreate"}}}};
  Json& volumes = codec::MakeList(pod_spec, "volumes");
  if (Json* present = codec::Named(volumes, api::kVolume)) {
    *present = volume;
  } else {
    volumes.push_back(volume);
  }
  Json& mounts = codec::MakeList(*container, "volumeMounts");
  // Compare mount paths, as the API server does when it merges mounts: a user may also mount the
  // volume at another path.
  if (std::none_of(mounts.begin(), mounts.end(), [](const Json& present) {
        return codec::TextAt(present, {"mountPath"}) == api::kMountPath;
      })) {
    mounts.push_back(
        {{"name", std::string(api::kVolume)}, {"mountPath", std::string(api::kMountPath)}});
  }
  Json& env = codec::MakeList(*container, "env");
  for (const api::EnvVar& variable : mount.env) {
    if (codec::Named(env, variable.name) == nullptr) {
      env.push_back({{"name", variable.name}, {"value", variable.value}});
    }
  }
}

void AddEvictionAnnotation(Json& metadata) {
  static constexpr std::string_view kSafeToEvict =
      "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";
  Json& annotations = codec::MakeObject(metadata, "annotations");
  const std::string present = codec::TextAt(annotations, {kSafeToEvict});
  const std::string volume(api::kVolume);
  if (present.empty()) {
    annotations[std::string(kSafeToEvict)] = volume;
  } else if (("," + present + ",").find("," + volume + ",") == std::string::npos) {
    annotations[std::string(kSafeToEvict)] = present + "," + volume;
  }
}

}  // namespace cachewarm::render

// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/acceptance/injectable.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/api/names.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::plan {

using codec::Json;

namespace {

bool IsBelowMount(const std::string& path) {
  const std::string mount = std::string(api::kMountPath) + "/";
  return (path + "/").starts_with(mount);
}

}  // namespace

std::string WhyNotInjectable(const Json& pod, std::string_view root) {
  const Json* os = codec::At(pod, {"spec", "os"});
  if (os != nullptr && codec::TextAt(*os, {"name"}) != "linux") {
    return "spec.os.name is not linux; only Linux pods can be injected";
  }
  const Json& owners = codec::ListAt(pod, {"metadata", "ownerReferences"});
  if (std::any_of(owners.begin(), owners.end(), [](const Json& owner) {
        return codec::TextAt(owner, {"kind"}) == "DaemonSet";
      })) {
    return "the pod belongs to a DaemonSet, whose pods are not injected";
  }
  const Json* spec = codec::At(pod, {"spec"});
  return spec == nullptr ? std::string() : MountConflict(*spec, root);
}

std::string MountConflict(const Json& pod_spec, std::string_view root) {
  if (const Json* volume = codec::Named(codec::ListAt(pod_spec, {"volumes"}), api::kVolume)) {
    const Json* path = codec::At(*volume, {"hostPath", "path"});
    const std::string text = path != nullptr && path->is_string() ? path->get<std::string>() : "";
    if (!text.starts_with(std::string(root) + "/")) {
      return fmt::format(
          "the pod template already has a volume named \"{}\", the name of the cache volume; "
          "rename that volume",
          api::kVolume);
    }
  }
  for (const Json& container : codec::ListAt(pod_spec, {"containers"})) {
    for (const Json& mount : codec::ListAt(container, {"volumeMounts"})) {
      if (codec::TextAt(mount, {"name"}) != api::kVolume &&
          IsBelowMount(codec::TextAt(mount, {"mountPath"}))) {
        return fmt::format(
            "container \"{}\" mounts volume \"{}\" at {}, but {} is the path of the cache volume; "
            "set another mountPath",
            codec::TextAt(container, {"name"}), codec::TextAt(mount, {"name"}),
            codec::TextAt(mount, {"mountPath"}), api::kMountPath);
      }
    }
  }
  return "";
}

}  // namespace cachewarm::plan

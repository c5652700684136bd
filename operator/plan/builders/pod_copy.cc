// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/builders/pod_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lib/codec/json.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::plan {

using codec::Json;

namespace {

// Returns the containers and the init containers, because an init container may be a sidecar that
// keeps running.
std::vector<const Json*> ContainersOf(const Json& spec) {
  std::vector<const Json*> out;
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : codec::ListAt(spec, {list})) {
      out.push_back(&container);
    }
  }
  return out;
}

std::string PortRefusal(const Json& spec) {
  if (codec::FlagAt(spec, {"hostNetwork"})) {
    return "spec.hostNetwork is set, so a copy of the pod would use the same host ports; set "
           "compile.builder to FirstPod";
  }
  for (const Json* container : ContainersOf(spec)) {
    for (const Json& port : codec::ListAt(*container, {"ports"})) {
      if (codec::IntegerAt(port, {"hostPort"}, 0) != 0) {
        return fmt::format(
            "container \"{}\" has hostPort {}, which a copy of the pod would use too; set "
            "compile.builder to FirstPod",
            codec::TextAt(*container, {"name"}), codec::IntegerAt(port, {"hostPort"}, 0));
      }
    }
  }
  return "";
}

std::string DeviceRefusal(const Json& spec) {
  return codec::ListAt(spec, {"resourceClaims"}).empty()
             ? ""
             : "spec.resourceClaims is set, and a copy of the "
               "pod might find none of the claimed devices "
               "free; set compile.builder to FirstPod";
}

std::string VolumeRefusal(const Json& spec) {
  const Json& volumes = codec::ListAt(spec, {"volumes"});
  for (const Json* container : ContainersOf(spec)) {
    for (const Json& mount : codec::ListAt(*container, {"volumeMounts"})) {
      if (codec::Named(volumes, codec::TextAt(mount, {"name"})) == nullptr) {
        return fmt::format(
            "container \"{}\" mounts \"{}\" of volumeClaimTemplates, which the pod of a Job does "
            "not have; set compile.builder to FirstPod",
            codec::TextAt(*container, {"name"}), codec::TextAt(mount, {"name"}));
      }
    }
  }
  for (const Json& volume : volumes) {
    const Json* claim = codec::At(volume, {"persistentVolumeClaim"});
    if (claim != nullptr && !codec::FlagAt(*claim, {"readOnly"})) {
      return fmt::format(
          "volume \"{}\" is a PersistentVolumeClaim that a copy of the pod could write to; set "
          "readOnly of the volume to true, or set compile.builder to FirstPod",
          codec::TextAt(volume, {"name"}));
    }
  }
  return "";
}

}  // namespace

std::string CopyRefusal(const Json& pod_template) {
  const Json* spec = codec::At(pod_template, {"spec"});
  if (spec == nullptr) {
    return "the pod template has no spec; add one";
  }
  for (const auto& refusal : {PortRefusal(*spec), DeviceRefusal(*spec), VolumeRefusal(*spec)}) {
    if (!refusal.empty()) {
      return refusal;
    }
  }
  return "";
}

bool SharesVolumeClaim(const Json& pod_template) {
  const Json& volumes = codec::ListAt(pod_template, {"spec", "volumes"});
  return std::any_of(volumes.begin(), volumes.end(), [](const Json& volume) {
    return codec::At(volume, {"persistentVolumeClaim"}) != nullptr;
  });
}

}  // namespace cachewarm::plan

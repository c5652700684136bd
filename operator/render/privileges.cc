// SPDX-License-Identifier: Apache-2.0
#include "operator/render/privileges.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "lib/codec/json_value.h"
#include "operator/render/fields.h"

namespace cachewarm::render {

using codec::Json;

namespace {

constexpr const char* kUnchangedPodFields[] = {"automountServiceAccountToken",
                                               "hostIPC",
                                               "hostNetwork",
                                               "hostPID",
                                               "hostUsers",
                                               "imagePullSecrets",
                                               "os",
                                               "resourceClaims",
                                               "runtimeClassName",
                                               "securityContext",
                                               "serviceAccount",
                                               "serviceAccountName",
                                               "shareProcessNamespace"};
constexpr const char* kContainerLists[] = {"containers", "initContainers"};
constexpr const char* kAllowedSources[] = {"configMap", "downwardAPI", "emptyDir"};
constexpr const char* kProbes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
constexpr const char* kHooks[] = {"postStart", "preStop"};
constexpr const char* kHandlers[] = {"httpGet", "tcpSocket"};

Json Member(const Json& object, std::string_view name) {
  const Json* found = Find(object, {name});
  return found == nullptr ? Json() : *found;
}

bool Holds(const std::vector<Json>& all, const Json& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// Objects and hosts that one container, or all containers of a pod, refer to.
struct References {
  // Elements of volumeMounts. Their mountPath is removed, because the location of a mount gives no
  // privilege.
  std::vector<Json> mounts;
  std::vector<Json> devices;
  std::vector<Json> secrets;  // secretKeyRef and secretRef
  std::vector<Json> hosts;    // hosts that kubelet contacts for probes and hooks
};

void AddHosts(const Json& action, References& out) {
  for (const char* handler : kHandlers) {
    const std::string host = Text(Member(action, handler), "host");
    if (!host.empty()) {
      out.hosts.emplace_back(host);
    }
  }
}

References ReferencesOf(const Json& container) {
  References out;
  for (Json mount : List(container, {"volumeMounts"})) {
    if (mount.is_object()) {
      mount.erase("mountPath");
    }
    out.mounts.push_back(std::move(mount));
  }
  for (const Json& device : List(container, {"volumeDevices"})) {
    out.devices.push_back(Member(device, "name"));
  }
  for (const Json& variable : List(container, {"env"})) {
    if (const Json* secret = Find(variable, {"valueFrom", "secretKeyRef"})) {
      out.secrets.push_back(*secret);
    }
  }
  for (const Json& source : List(container, {"envFrom"})) {
    if (const Json* secret = Find(source, {"secretRef"})) {
      out.secrets.push_back(*secret);
    }
  }
  for (const char* probe : kProbes) {
    AddHosts(Member(container, probe), out);
  }
  for (const char* hook : kHooks) {
    AddHosts(Member(Member(container, "lifecycle"), hook), out);
  }
  return out;
}

References AllReferences(const Json& spec) {
  References all;
  for (const char* list : kContainerLists) {
    for (const Json& container : List(spec, {list})) {
      References own = ReferencesOf(container);
      const auto move_to = [](std::vector<Json>& from, std::vector<Json>& to) {
        std::move(from.begin(), from.end(), std::back_inserter(to));
      };
      move_to(own.mounts, all.mounts);
      move_to(own.devices, all.devices);
      move_to(own.secrets, all.secrets);
      move_to(own.hosts, all.hosts);
    }
  }
  return all;
}

bool IsAllowed(const Json& volume) {
  for (const auto& [name, source] : volume.items()) {
    if (name != "name" && std::find(std::begin(kAllowedSources), std::end(kAllowedSources), name) ==
                              std::end(kAllowedSources)) {
      return false;
    }
  }
  return volume.is_object();
}

std::string NewVolume(const Json& before, const Json& after) {
  for (const Json& volume : List(after, {"volumes"})) {
    const Json* present = Named(List(before, {"volumes"}), Text(volume, "name"));
    const bool same = present != nullptr && *present == volume;
    if (!same && !IsAllowed(volume)) {
      return fmt::format(
          "spec.volumes: \"{}\" must not differ from the workload's; only emptyDir, configMap and "
          "downwardAPI volumes can be added",
          Text(volume, "name"));
    }
  }
  return "";
}

std::string NewReference(const Json& container, const References& known, const Json& volumes) {
  const References own = ReferencesOf(container);
  const std::string name = Text(container, "name");
  for (const Json& mount : own.mounts) {
    const Json* volume = Named(volumes, Text(mount, "name"));
    if (!Holds(known.mounts, mount) && (volume == nullptr || !IsAllowed(*volume))) {
      return fmt::format(
          "container \"{}\": no container of the workload mounts volume \"{}\" with the same "
          "readOnly, subPath and mountPropagation; use the workload's values or remove the mount",
          name, Text(mount, "name"));
    }
  }
  const auto is_new = [](const std::vector<Json>& of_own, const std::vector<Json>& of_all) {
    return !std::all_of(of_own.begin(), of_own.end(),
                        [&](const Json& each) { return Holds(of_all, each); });
  };
  if (is_new(own.devices, known.devices)) {
    return fmt::format("container \"{}\": volumeDevices must not differ from the workload's", name);
  }
  if (is_new(own.secrets, known.secrets)) {
    return fmt::format(
        "container \"{}\": references a Secret that the workload does not use; remove the "
        "reference or use the Secret in the workload",
        name);
  }
  if (is_new(own.hosts, known.hosts)) {
    return fmt::format(
        "container \"{}\": the host of a probe or hook must not differ from the workload's; remove "
        "the host",
        name);
  }
  return "";
}

}  // namespace

std::string FindGainedPrivilege(const Json& before, const Json& after, std::string_view container) {
  const Json old_spec = Member(before, "spec");
  const Json spec = Member(after, "spec");
  for (const char* name : kUnchangedPodFields) {
    if (Member(old_spec, name) != Member(spec, name)) {
      return fmt::format("spec.{}: must not differ from the workload's; remove this field", name);
    }
  }
  if (std::string refusal = NewVolume(old_spec, spec); !refusal.empty()) {
    return refusal;
  }
  const Json* compiles = Named(List(old_spec, {"containers"}), container);
  const References known = AllReferences(old_spec);
  for (const char* list : kContainerLists) {
    for (const Json& each : List(spec, {list})) {
      const Json* present = Named(List(old_spec, {list}), Text(each, "name"));
      const Json* model = present != nullptr ? present : compiles;
      if (model == nullptr ||
          Member(*model, "securityContext") != Member(each, "securityContext")) {
        return fmt::format(
            "container \"{}\": securityContext must not differ from the workload's; a new "
            "container must have the securityContext of \"{}\"",
            Text(each, "name"), container);
      }
      if (std::string refusal = NewReference(each, known, List(spec, {"volumes"}));
          !refusal.empty()) {
        return refusal;
      }
    }
  }
  return "";
}

}  // namespace cachewarm::render

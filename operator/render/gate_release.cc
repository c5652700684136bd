// SPDX-License-Identifier: Apache-2.0
#include "operator/render/gate_release.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "operator/render/fields.h"

namespace cachewarm::render {

using codec::Json;

namespace {

Json Operation(const char* op, const std::string& path) {
  return {{"op", op}, {"path", path}};
}

Json Operation(const char* op, const std::string& path, Json value) {
  Json out = Operation(op, path);
  out["value"] = std::move(value);
  return out;
}

// RFC 6901: "~" is "~0" and "/" is "~1" inside one step of a pointer.
std::string Escaped(std::string_view step) {
  std::string out;
  for (const char c : step) {
    out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return out;
}

std::string AnnotationPath(std::string_view key) {
  return "/metadata/annotations/" + Escaped(key);
}

}  // namespace

absl::StatusOr<Json> GateReleasePatch(const GateReleaseSpec& spec) {
  const auto& gates = spec.pod.gates;
  const auto ours = std::find(gates.begin(), gates.end(), api::kSchedulingGate);
  if (ours == gates.end()) {
    return absl::NotFoundError(fmt::format("pod {} is not held by us", spec.pod.meta.name));
  }
  const std::string gate = fmt::format("/spec/schedulingGates/{}", ours - gates.begin());
  Json patch = Json::array();
  patch.push_back(Operation("test", "/metadata/uid", spec.pod.meta.uid));
  patch.push_back(Operation("test", gate + "/name", std::string(api::kSchedulingGate)));
  patch.push_back(Operation("remove", gate));
  // Without the policy's annotation the pod may have none at all, and adding an empty map would
  // wipe those that the store does not keep: the release must not depend on a note.
  if (!spec.pod.meta.annotations.empty()) {
    patch.push_back(Operation("add", AnnotationPath(api::kReleasedAnnotation), spec.reason));
    patch.push_back(Operation("add", AnnotationPath(api::kHeldSecondsAnnotation),
                              fmt::format("{:.3f}", spec.held_seconds)));
  }
  const Json* affinity =
      spec.pod.object == nullptr ? nullptr : Find(*spec.pod.object, {"spec", "affinity"});
  const Json present = affinity != nullptr ? *affinity : Json::object();
  Json wanted = WithHostRules(present, spec.hosts);
  if (wanted != present) {
    patch.push_back(Operation("add", "/spec/affinity", std::move(wanted)));
  }
  return patch;
}

}  // namespace cachewarm::render

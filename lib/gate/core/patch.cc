// SPDX-License-Identifier: Apache-2.0
#include "lib/gate/core/patch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"

namespace cachewarm::gate {

using codec::Json;

namespace {

constexpr std::string_view kAnnotations = "/metadata/annotations/";

// RFC 6901 escapes "~" as "~0" and "/" as "~1" inside a reference token.
std::string AnnotationPath(std::string_view key) {
  std::string out(kAnnotations);
  for (const char c : key) {
    out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return out;
}

Json Operation(const char* op, const std::string& path, Json value) {
  return {{"op", op}, {"path", path}, {"value", std::move(value)}};
}

absl::StatusOr<std::string> PathOfGate(const api::Pod& pod) {
  const auto gate = std::find(pod.gates.begin(), pod.gates.end(), api::kSchedulingGate);
  if (gate == pod.gates.end()) {
    return absl::NotFoundError(fmt::format("pod {} is not held", pod.meta.name));
  }
  return fmt::format("/spec/schedulingGates/{}", gate - pod.gates.begin());
}

// Returns JSON patch operations that fail if the pod was replaced or the index of the gate has
// changed.
Json TestsOf(const api::Pod& pod, const std::string& gate) {
  return Json::array({Operation("test", "/metadata/uid", pod.meta.uid),
                      Operation("test", gate + "/name", std::string(api::kSchedulingGate))});
}

}  // namespace

absl::StatusOr<Json> ReleasePatch(const api::Pod& pod, const Note& note) {
  CW_ASSIGN_OR_RETURN(const std::string gate, PathOfGate(pod));
  Json patch = TestsOf(pod, gate);
  patch.push_back({{"op", "remove"}, {"path", gate}});
  // An empty map means that the pod has no annotations, or that DecodeGates() did not read them. In
  // the second case, adding the member "annotations" would delete the existing ones. Therefore add
  // no annotations in either case.
  if (!pod.meta.annotations.empty()) {
    patch.push_back(
        Operation("add", AnnotationPath(api::kReleasedAnnotation), std::string(note.reason)));
    patch.push_back(Operation("add", AnnotationPath(api::kHeldSecondsAnnotation),
                              fmt::format("{:.3f}", note.held_seconds)));
  }
  return patch;
}

Json WithoutAnnotations(const Json& patch) {
  Json rest = Json::array();
  for (const Json& operation : patch) {
    if (!operation.at("path").get_ref<const std::string&>().starts_with(kAnnotations)) {
      rest.push_back(operation);
    }
  }
  return rest;
}

absl::StatusOr<Json> AnnotationPatch(const api::Pod& pod, std::string_view key,
                                     std::string_view value) {
  CW_ASSIGN_OR_RETURN(const std::string gate, PathOfGate(pod));
  Json patch = TestsOf(pod, gate);
  patch.push_back(Operation("add", AnnotationPath(key), std::string(value)));
  return patch;
}

}  // namespace cachewarm::gate

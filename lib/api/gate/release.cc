// SPDX-License-Identifier: Apache-2.0
#include "lib/api/gate/release.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "fmt/format.h"
#include "lib/api/json/limits.h"
#include "lib/api/json/parts.h"
#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"

namespace cachewarm::api::gate {

using codec::Json;

static_assert(kMaxHold == std::chrono::seconds(json::kHoldSecondsMax));

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

absl::StatusOr<std::string> PathOfGate(const Pod& pod) {
  const auto gate = std::find(pod.gates.begin(), pod.gates.end(), kSchedulingGate);
  if (gate == pod.gates.end()) {
    return absl::NotFoundError(fmt::format("pod {} is not held", pod.meta.name));
  }
  return fmt::format("/spec/schedulingGates/{}", gate - pod.gates.begin());
}

// Returns JSON patch operations that fail if the pod was replaced or the index of the gate has
// changed.
Json TestsOf(const Pod& pod, const std::string& gate) {
  return Json::array({Operation("test", "/metadata/uid", pod.meta.uid),
                      Operation("test", gate + "/name", std::string(kSchedulingGate))});
}

}  // namespace

bool IsHeld(const Pod& pod) {
  return std::find(pod.gates.begin(), pod.gates.end(), kSchedulingGate) != pod.gates.end();
}

WallTime Deadline(const Pod& pod, Duration otherwise) {
  const auto noted = pod.meta.annotations.find(kHeldUntilAnnotation);
  const auto until = noted == pod.meta.annotations.end()
                         ? absl::StatusOr<WallTime>(absl::NotFoundError(""))
                         : ParseTime(noted->second);
  return std::min(until.ok() ? *until : pod.meta.created + otherwise, pod.meta.created + kMaxHold);
}

double HeldSecondsOf(const Pod& pod) {
  constexpr double kDay = 86'400;
  const auto note = pod.meta.annotations.find(kHeldSecondsAnnotation);
  double seconds = 0;
  const bool is_number =
      note != pod.meta.annotations.end() && absl::SimpleAtod(std::string(note->second), &seconds);
  return is_number && seconds >= 0 && seconds < kDay ? seconds : 0;
}

Pod DecodeGates(const Json& object) {
  Pod pod;
  codec::Reader whole(object, "");
  json::ReadMeta(whole, pod.meta);  // reads the other fields even if one is invalid
  pod.meta.labels = {};
  pod.meta.annotations = {};
  codec::Reader gates(object, "");
  gates.Object("spec", [&](codec::Reader& spec) {
    spec.List("schedulingGates", SIZE_MAX,
              [&](codec::Reader& gate) { gate.Read("name", pod.gates.emplace_back()); });
  });
  return pod;
}

absl::StatusOr<Json> ReleasePatch(const Pod& pod, const Note& note) {
  CW_ASSIGN_OR_RETURN(const std::string gate, PathOfGate(pod));
  Json patch = TestsOf(pod, gate);
  patch.push_back({{"op", "remove"}, {"path", gate}});
  // An empty map means that the pod has no annotations, or that DecodeGates() did not read them. In
  // the second case, adding the member "annotations" would delete the existing ones. Therefore add
  // no annotations in either case.
  if (!pod.meta.annotations.empty()) {
    patch.push_back(
        Operation("add", AnnotationPath(kReleasedAnnotation), std::string(note.reason)));
    patch.push_back(Operation("add", AnnotationPath(kHeldSecondsAnnotation),
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

absl::StatusOr<Json> AnnotationPatch(const Pod& pod, std::string_view key, std::string_view value) {
  CW_ASSIGN_OR_RETURN(const std::string gate, PathOfGate(pod));
  Json patch = TestsOf(pod, gate);
  patch.push_back(Operation("add", AnnotationPath(key), std::string(value)));
  return patch;
}

}  // namespace cachewarm::api::gate

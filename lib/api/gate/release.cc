// SPDX-License-Identifier: Apache-2.0
#include "lib/api/gate/release.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "fmt/format.h"
#include "lib/api/json/limits.h"
#include "lib/api/names.h"
#include "lib/codec/json_value.h"

namespace cachewarm::api::gate {

using codec::Json;

static_assert(kLongestHold == std::chrono::seconds(json::kHoldSecondsMax));

namespace {

// RFC 6901: "~" is "~0" and "/" is "~1" inside one step of a pointer.
std::string AnnotationPath(std::string_view key) {
  std::string out = "/metadata/annotations/";
  for (const char c : key) {
    out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return out;
}

Json Operation(const char* op, const std::string& path, Json value) {
  return {{"op", op}, {"path", path}, {"value", std::move(value)}};
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
  return std::min(until.ok() ? *until : pod.meta.created + otherwise,
                  pod.meta.created + kLongestHold);
}

double NotedHoldSeconds(const Pod& pod) {
  constexpr double kDay = 86'400;
  const auto note = pod.meta.annotations.find(kHeldSecondsAnnotation);
  double seconds = 0;
  const bool is_number =
      note != pod.meta.annotations.end() && absl::SimpleAtod(std::string(note->second), &seconds);
  return is_number && seconds >= 0 && seconds < kDay ? seconds : 0;
}

absl::StatusOr<Json> ReleasePatch(const Pod& pod, const Note& note) {
  const auto ours = std::find(pod.gates.begin(), pod.gates.end(), kSchedulingGate);
  if (ours == pod.gates.end()) {
    return absl::NotFoundError(fmt::format("pod {} is not held by us", pod.meta.name));
  }
  const std::string gate = fmt::format("/spec/schedulingGates/{}", ours - pod.gates.begin());
  Json patch = Json::array();
  patch.push_back(Operation("test", "/metadata/uid", pod.meta.uid));
  patch.push_back(Operation("test", gate + "/name", std::string(kSchedulingGate)));
  patch.push_back({{"op", "remove"}, {"path", gate}});
  // Without the policy's annotation the pod may have none at all, and adding an empty map would
  // wipe those that the reader does not keep: the release must not depend on a note.
  if (!pod.meta.annotations.empty()) {
    patch.push_back(
        Operation("add", AnnotationPath(kReleasedAnnotation), std::string(note.reason)));
    patch.push_back(Operation("add", AnnotationPath(kHeldSecondsAnnotation),
                              fmt::format("{:.3f}", note.held_seconds)));
  }
  return patch;
}

}  // namespace cachewarm::api::gate

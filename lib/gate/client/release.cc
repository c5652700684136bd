// SPDX-License-Identifier: Apache-2.0
#include "lib/gate/client/release.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "lib/api/names.h"
#include "lib/base/status.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"

namespace cachewarm::gate {

using codec::Json;

namespace {

// RFC 6901 escapes "~" as "~0" and "/" as "~1" inside a reference token.
std::string AnnotationPath(std::string_view key) {
  std::string out("/metadata/annotations/");
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

// Returns the operations that fail if the pod was replaced or the index of the gate has changed.
Json TestsOf(const api::Pod& pod, const std::string& gate) {
  return Json::array({Operation("test", "/metadata/uid", pod.meta.uid),
                      Operation("test", gate + "/name", std::string(api::kSchedulingGate))});
}

void ReplaceAffinity(const api::Pod& pod, const Json& wanted, Json& patch) {
  const Json* affinity =
      pod.object == nullptr ? nullptr : codec::At(*pod.object, {"spec", "affinity"});
  const Json present = affinity != nullptr ? *affinity : Json();
  if (wanted != (present.is_null() ? Json::object() : present)) {
    // Users may change the affinity of a gated pod. In the operation "test", the API server treats
    // an absent member as null.
    patch.push_back(Operation("test", "/spec/affinity", present));
    patch.push_back(Operation("add", "/spec/affinity", wanted));
  }
}

kube::ObjectName NameOfPod(const api::Pod& pod) {
  return {pod.meta.ns, pod.meta.name};
}

// The gate of cachewarm on the API server, compared with the pod from which a patch was made.
enum class GateState {
  kGone,       // the pod is gone, replaced, or released
  kMoved,      // the gate has another index, so that every patch with the old one fails
  kUnchanged,  // also if the pod cannot be read
};

GateState ReadGateState(kube::Client& client, const api::Pod& pod, std::stop_token stop) {
  const auto current = client.Do(kube::Get(kube::kPods, NameOfPod(pod)), stop);
  if (!current.ok()) {
    return absl::IsNotFound(current.status()) ? GateState::kGone : GateState::kUnchanged;
  }
  const Json& gates = codec::ListAt(*current, {"spec", "schedulingGates"});
  const auto gate = std::find_if(gates.begin(), gates.end(), [](const Json& each) {
    return codec::TextAt(each, {"name"}) == api::kSchedulingGate;
  });
  if (kube::UidOf(*current) != pod.meta.uid || gate == gates.end()) {
    return GateState::kGone;
  }
  const auto before = std::find(pod.gates.begin(), pod.gates.end(), api::kSchedulingGate);
  return gate - gates.begin() == before - pod.gates.begin() ? GateState::kUnchanged
                                                            : GateState::kMoved;
}

absl::Status Send(kube::Client& client, const PodRelease& release, const Json& patch,
                  std::stop_token stop) {
  return client
      .Do(kube::JsonPatch(kube::kPods, NameOfPod(release.pod), patch,
                          {.field_manager = std::string(release.manager)}),
          stop)
      .status();
}

}  // namespace

absl::StatusOr<Json> ReleasePatch(const PodRelease& release) {
  const api::Pod& pod = release.pod;
  CW_ASSIGN_OR_RETURN(const std::string gate, PathOfGate(pod));
  Json patch = TestsOf(pod, gate);
  patch.push_back({{"op", "remove"}, {"path", gate}});
  // An empty map means that the pod has no annotations, or that DecodeGates() did not read them. In
  // the second case, adding the member "annotations" would delete the existing ones. Therefore add
  // no annotations in either case.
  if (!pod.meta.annotations.empty() && !release.reason.empty()) {
    patch.push_back(
        Operation("add", AnnotationPath(api::kReleasedAnnotation), std::string(release.reason)));
    patch.push_back(Operation("add", AnnotationPath(api::kHeldSecondsAnnotation),
                              fmt::format("{:.3f}", release.held_seconds)));
  }
  if (release.affinity != nullptr) {
    ReplaceAffinity(pod, *release.affinity, patch);
  }
  return patch;
}

absl::StatusOr<Json> AnnotationPatch(const api::Pod& pod, std::string_view key,
                                     std::string_view value) {
  CW_ASSIGN_OR_RETURN(const std::string gate, PathOfGate(pod));
  Json patch = TestsOf(pod, gate);
  patch.push_back(Operation("add", AnnotationPath(key), std::string(value)));
  return patch;
}

bool IsStillHeld(kube::Client& client, const api::Pod& pod, std::stop_token stop) {
  return ReadGateState(client, pod, std::move(stop)) != GateState::kGone;
}

absl::StatusOr<bool> Release(kube::Client& client, const PodRelease& release,
                             std::stop_token stop) {
  CW_ASSIGN_OR_RETURN(const Json patch, ReleasePatch(release));
  const absl::Status answer = Send(client, release, patch, stop);
  if (answer.ok()) {
    return true;
  }
  // If a "test" operation failed, the gate or the pod may be gone, or the gate has moved.
  const GateState state = ReadGateState(client, release.pod, stop);
  if (state == GateState::kGone) {
    return false;
  }
  if (state == GateState::kMoved) {
    return absl::AbortedError(
        fmt::format("the scheduling gates of pod {} changed meanwhile", release.pod.meta.name));
  }
  PodRelease unannotated = release;
  unannotated.reason = {};
  CW_ASSIGN_OR_RETURN(const Json bare, ReleasePatch(unannotated));
  // Try without annotations after every error except those of an overloaded server: a policy that
  // rejects the annotations may return any code.
  const bool is_busy = absl::IsResourceExhausted(answer) || absl::IsUnavailable(answer);
  if (!is_busy && bare.size() < patch.size() && Send(client, release, bare, stop).ok()) {
    return true;
  }
  return answer;
}

}  // namespace cachewarm::gate

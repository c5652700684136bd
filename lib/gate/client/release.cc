// SPDX-License-Identifier: Apache-2.0
#include "lib/gate/client/release.h"

#include <algorithm>
#include <string>

#include "lib/api/names.h"
#include "lib/codec/json_path.h"
#include "lib/codec/json_value.h"
#include "lib/gate/core/patch.h"

namespace cachewarm::gate {
namespace {

bool HasOurGate(const codec::Json& pod) {
  const codec::Json& gates = codec::ListAt(pod, {"spec", "schedulingGates"});
  return std::any_of(gates.begin(), gates.end(), [](const codec::Json& gate) {
    return codec::TextAt(gate, {"name"}) == api::kSchedulingGate;
  });
}

kube::ObjectName NameOfPod(const api::Pod& pod) {
  return {pod.meta.ns, pod.meta.name};
}

absl::Status Send(kube::Client& client, const GatePatch& patch, const codec::Json& operations,
                  std::stop_token stop) {
  return client
      .Do(kube::JsonPatch(kube::kPods, NameOfPod(patch.pod), operations,
                          {.field_manager = std::string(patch.manager)}),
          stop)
      .status();
}

}  // namespace

bool IsStillHeld(kube::Client& client, const api::Pod& pod, std::stop_token stop) {
  const auto current = client.Do(kube::Get(kube::kPods, NameOfPod(pod)), stop);
  if (!current.ok()) {
    return !absl::IsNotFound(current.status());
  }
  return kube::UidOf(*current) == pod.meta.uid && HasOurGate(*current);
}

absl::StatusOr<bool> Release(kube::Client& client, const GatePatch& patch, std::stop_token stop) {
  const absl::Status answer = Send(client, patch, patch.operations, stop);
  if (answer.ok()) {
    return true;
  }
  // If a "test" operation failed, the gate or the pod may be gone.
  if (!IsStillHeld(client, patch.pod, stop)) {
    return false;
  }
  const codec::Json bare = WithoutAnnotations(patch.operations);
  // Try without annotations after every error except those of an overloaded server: a policy that
  // rejects the annotations may return any code.
  const bool is_busy = absl::IsResourceExhausted(answer) || absl::IsUnavailable(answer);
  if (!is_busy && bare.size() < patch.operations.size() && Send(client, patch, bare, stop).ok()) {
    return true;
  }
  return answer;
}

}  // namespace cachewarm::gate

// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/client/release_gate.h"

#include <algorithm>
#include <string>

#include "lib/api/names.h"
#include "lib/codec/json_value.h"

namespace cachewarm::kube {
namespace {

bool HasOurGate(const codec::Json& pod) {
  const codec::Json* gates = At(pod, {"spec", "schedulingGates"});
  return gates != nullptr && gates->is_array() &&
         std::any_of(gates->begin(), gates->end(), [](const codec::Json& gate) {
           return TextAt(gate, {"name"}) == api::kSchedulingGate;
         });
}

}  // namespace

absl::StatusOr<bool> ReleaseGate(Client& client, const GatePatch& patch, std::stop_token stop) {
  const ObjectName name{patch.pod.meta.ns, patch.pod.meta.name};
  const auto answer = client.Do(
      JsonPatch(kPods, name, patch.operations, {.field_manager = std::string(patch.manager)}),
      stop);
  if (answer.ok()) {
    return true;
  }
  // A failed "test": the gate or the pod that we saw may not be there any more.
  const auto current = client.Do(Get(kPods, name), stop);
  if (absl::IsNotFound(current.status()) ||
      (current.ok() && (UidOf(*current) != patch.pod.meta.uid || !HasOurGate(*current)))) {
    return false;
  }
  return answer.status();
}

}  // namespace cachewarm::kube

// SPDX-License-Identifier: Apache-2.0
#include "lib/gate/core/held.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "lib/api/json/limits.h"
#include "lib/api/json/parts.h"
#include "lib/api/names.h"
#include "lib/codec/json_value.h"
#include "lib/codec/reader.h"

namespace cachewarm::gate {

static_assert(kMaxHold == std::chrono::seconds(api::json::kHoldSecondsMax));

bool IsHeld(const api::Pod& pod) {
  return std::find(pod.gates.begin(), pod.gates.end(), api::kSchedulingGate) != pod.gates.end();
}

WallTime Deadline(const api::Pod& pod, Duration otherwise) {
  const auto noted = pod.meta.annotations.find(api::kHeldUntilAnnotation);
  const auto until = noted == pod.meta.annotations.end()
                         ? absl::StatusOr<WallTime>(absl::NotFoundError(""))
                         : ParseTime(noted->second);
  return std::min(until.ok() ? *until : pod.meta.created + otherwise, pod.meta.created + kMaxHold);
}

double HeldSecondsOf(const api::Pod& pod) {
  constexpr double kDay = 86'400;
  const auto note = pod.meta.annotations.find(api::kHeldSecondsAnnotation);
  double seconds = 0;
  const bool is_number =
      note != pod.meta.annotations.end() && absl::SimpleAtod(std::string(note->second), &seconds);
  return is_number && seconds >= 0 && seconds < kDay ? seconds : 0;
}

api::Pod DecodeGates(const codec::Json& object) {
  api::Pod pod;
  codec::Reader whole(object, "");
  api::json::ReadMeta(whole, pod.meta);  // reads the other fields even if one is invalid
  pod.meta.labels = {};
  pod.meta.annotations = {};
  codec::Reader gates(object, "");
  gates.Object("spec", [&](codec::Reader& spec) {
    spec.List("schedulingGates", SIZE_MAX,
              [&](codec::Reader& gate) { gate.Read("name", pod.gates.emplace_back()); });
  });
  return pod;
}

}  // namespace cachewarm::gate

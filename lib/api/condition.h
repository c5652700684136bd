// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"
#include "lib/codec/reader.h"

namespace cachewarm::api {

// metav1.Condition (Kubernetes API conventions, "typical status properties").
struct Condition {
  std::string type;
  std::string status = "Unknown";  // "True", "False", "Unknown"
  std::string reason;              // CamelCase, from reasons.h
  std::string message;             // for people; at most 1024 bytes
  int64_t observed_generation = 0;
  WallTime last_transition_time{};

  friend bool operator==(const Condition&, const Condition&) = default;
};

// What a planner decides about one condition; SetCondition keeps the time of the last flip.
struct Verdict {
  bool holds = false;
  std::string reason;
  std::string message;
};

// Adds or replaces the condition `type`. last_transition_time moves to `now` only when the status
// flips. Messages are cut to 1024 bytes at a UTF-8 border.
void SetCondition(std::vector<Condition>& conditions, std::string_view type, const Verdict& verdict,
                  int64_t generation, WallTime now);
const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type);

void Decode(codec::Reader& reader, Condition& out);
codec::Json Encode(const Condition& condition);

}  // namespace cachewarm::api

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
  std::string message;             // for users; 1 to 1024 bytes
  int64_t observed_generation = 0;
  WallTime last_transition_time{};

  friend bool operator==(const Condition&, const Condition&) = default;
};

// New values of one condition.
struct ConditionUpdate {
  bool holds = false;  // the status: True or False
  std::string reason;
  std::string message;  // not empty
};

// Adds or replaces the condition `type`. Sets last_transition_time to `now` only if the status
// changes. Cuts the message to 1024 bytes at a UTF-8 boundary. Replaces an empty message, which the
// CRD rejects, by the reason.
void SetCondition(std::vector<Condition>& conditions, std::string_view type,
                  const ConditionUpdate& update, int64_t generation, WallTime now);
const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type);

void Decode(codec::Reader& reader, Condition& out);
codec::Json Encode(const Condition& condition);

}  // namespace cachewarm::api

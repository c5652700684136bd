// SPDX-License-Identifier: Apache-2.0
#include "lib/api/condition.h"

#include <algorithm>

#include "lib/api/json/tables.h"

namespace cachewarm::api {

void SetCondition(std::vector<Condition>& conditions, std::string_view type,
                  const ConditionUpdate& update, int64_t generation, WallTime now) {
  auto found = std::find_if(conditions.begin(), conditions.end(),
                            [&](const Condition& c) { return c.type == type; });
  if (found == conditions.end()) {
    found = conditions.insert(found, Condition{.type = std::string(type)});
  }
  const std::string status = update.holds ? "True" : "False";
  if (found->status != status || found->last_transition_time == WallTime{}) {
    found->status = status;
    // metav1.Time has whole seconds: a finer time would differ when it is read back.
    found->last_transition_time = std::chrono::floor<std::chrono::seconds>(now);
  }
  found->reason = update.reason;
  found->message =
      json::Cut(update.message.empty() ? update.reason : update.message, json::kMessageBytes);
  found->observed_generation = generation;
}

const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [&](const Condition& c) { return c.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

void Decode(codec::Reader& reader, Condition& out) {
  json::ReadObject(json::kCondition, reader, out);
}

codec::Json Encode(const Condition& condition) {
  return json::WriteObject(json::kCondition, condition);
}

}  // namespace cachewarm::api
